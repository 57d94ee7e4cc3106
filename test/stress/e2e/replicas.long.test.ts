import { expect, test, vi } from 'vitest'
import { CLAIMS_PER_ATTEMPT_ON_SERVER } from '../../../src/core/domain/delivery/delivery.ts'
import { breaches } from '../../support/delivery/relaying-ledger.ts'
import { repeats, settledLedger } from '../../support/delivery/settled-ledger.ts'
import { type Mood, type MoodyReceiver, startMoodyReceiver } from '../../support/network/moody-receiver.ts'
import { type Answered, distinctPushes, startLoad } from '../../support/network/push-load.ts'
import { type Asker, textOf, untilSent } from '../../support/relay/caught-up.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { ADMIN, logIn, push, startTestRelay, writeConfig } from '../../support/relay/relay.ts'
import { type ReplicaProcess, startReplica, untilShared } from '../../support/relay/replica-processes.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { startOwnServer } from '../../support/store/postgres-database.ts'

const KILLS = LONG ? 20 : 1
const REPLICAS = 3
const PARCELS = 19
const PER_ENDPOINT = 4
const KEY = 'the-key-of-these-endpoints'
const AT_ONCE = 3
/** Each kill and each restart waits for at least this many pushes. */
const SOME = 30

/** How each endpoint answers the first attempt of an event. It accepts a later attempt. */
const MOODS: Readonly<Record<string, (nth: number) => Mood>> = {
  quick: () => ({ status: 200, afterMs: 0 }),
  slow: (nth) => ({ status: 202, afterMs: (nth % 5) * 20 }),
  failing: (nth) => (nth % 9 === 4 ? 'reset' : { status: nth % 7 === 3 ? 503 : 200, afterMs: 0 }),
  other: (nth) => ({ status: nth % 31 === 30 ? 500 : 200, afterMs: nth % 3 }),
}

async function startEndpoints(stack: AsyncDisposableStack) {
  const receivers = new Map<string, MoodyReceiver>()
  for (const [name, moodOf] of Object.entries(MOODS)) {
    const seen = new Set<string>()
    const moodOfBody = (body: string): Mood => {
      if (seen.has(body)) return { status: 200, afterMs: 0 }
      seen.add(body)
      return moodOf(seen.size)
    }
    receivers.set(name, stack.use(await startMoodyReceiver(KEY, moodOfBody)))
  }
  return receivers
}

/** Creates a carrier that pushes to every replica, and that can repeat the pushes that were not answered 200. */
function createCarrier(pushes: ReturnType<typeof distinctPushes>) {
  const answers: Answered[] = []
  return {
    answers,
    pushTo: (replica: ReplicaProcess) => startLoad(replica.publicUrl, AT_ONCE, pushes.next),
    async end(load: ReturnType<typeof startLoad>) {
      answers.push(...(await load.stop()))
    },
    async pushAgain(replica: ReplicaProcess) {
      for (const { body } of answers.filter(({ status }) => status !== 200)) expect((await push(replica.publicUrl, body)).status).toBe(200)
    },
    bodies: () => answers.map(({ body }) => body),
  }
}

const histories = (asker: Asker, parcels: readonly string[]) =>
  Promise.all(parcels.flatMap((id) => (['all', 'latest'] as const).map((kind) => textOf(asker, id, kind, 'sv'))))

test(`after ${KILLS} kills and a restart of the server, answers equal SQLite’s, and events are in order`, async () => {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startOwnServer())
  const receivers = await startEndpoints(stack)
  const sections = {
    endpoints: [...receivers].map(([name, { url }]) => ({ name, url, sharedKey: KEY })),
    delivery: { schedule: ['50ms', '100ms', '200ms'], timeout: '3s', perEndpoint: PER_ENDPOINT, allowNetworks: ['127.0.0.0/8'] },
  }
  const config = writeConfig(temporaryFolder(), NO_CARRIER, { ...sections, ...(await onPostgres(server.url())) })
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => startReplica(config)))
  for (const replica of replicas) stack.use(replica)
  const [steady] = replicas
  if (steady === undefined) throw new Error('no replica')
  const told = await untilShared(steady, REPLICAS, receivers.size)
  expect(told.filter(({ roles }) => roles.some((role) => role.startsWith('dispatcher/')))).toHaveLength(REPLICAS)

  const pushes = distinctPushes(PARCELS)
  const carrier = createCarrier(pushes)
  for (let kill = 1; kill <= KILLS; kill++) {
    const loads = replicas.map(carrier.pushTo)
    await Promise.all(loads.map((load) => load.untilAnswered(SOME)))
    // Never kill the first replica, because the test asks it at the end.
    const at = 1 + (kill % (REPLICAS - 1))
    replicas[at]?.process.kill('SIGKILL')
    await replicas[at]?.ended
    if (kill === Math.min(2, KILLS)) {
      await server.stop('immediate')
      await loads[0]?.untilAnswered(2 * SOME)
      await server.start()
    }
    await loads[0]?.untilAnswered(3 * SOME)
    for (const load of loads) await carrier.end(load)
    // After every third kill, restart the replica only when the others have taken over its work.
    if (kill % 3 === 0) await untilShared(steady, REPLICAS - 1, receivers.size)
    replicas[at] = stack.use(await startReplica(config))
  }
  expect(carrier.answers.filter(({ status }) => ![200, 503, null].includes(status))).toEqual([])
  await carrier.pushAgain(steady)
  await untilShared(steady, REPLICAS, receivers.size)

  const bodies = carrier.bodies()
  // Every delivery ends without another push or an operator.
  await untilSent(steady.asker)
  const endpoints = await settledLedger(steady, receivers)
  expect(breaches({ acknowledged: bodies, parcelOf: (body) => pushes.parcels([body])[0] ?? '', endpoints })).toEqual([])
  expect(endpoints.flatMap(({ deliveries }) => deliveries.filter(({ state }) => state !== 'delivered'))).toEqual([])
  const repeated = endpoints.map(repeats)
  const faults = KILLS + REPLICAS
  console.log(
    `${bodies.length} pushes, ${carrier.answers.filter(({ status }) => status !== 200).length} of them again; repeated: ${repeated.join()}`,
  )
  expect(Math.max(...repeated)).toBeLessThanOrEqual(faults * PER_ENDPOINT * CLAIMS_PER_ATTEMPT_ON_SERVER)

  const parcels = pushes.parcels(bodies)
  const alone = await startTestRelay(temporaryFolder(), NO_CARRIER)
  stack.defer(() => alone.stop())
  for (const body of bodies) expect((await push(alone.publicUrl, body)).status).toBe(200)
  const wanted = await histories({ internalUrl: alone.internalUrl, token: await logIn(alone.internalUrl, ADMIN) }, parcels)
  for (const { asker } of replicas) expect(await histories(asker, parcels)).toEqual(wanted)
  await vi.waitFor(async () => expect(await steady.replicas()).toHaveLength(REPLICAS), { timeout: 60_000 })
})
