import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { type Answer, operatorOf } from '../support/relay/manage.ts'
import { endedJob, startMove } from '../support/relay/moves-of-relay.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { startReplica } from '../support/relay/replica-processes.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

/** Longer than any step takes unless it hangs. */
const LATE = { timeout: 60_000, interval: 100 }
const BACKLOG = 20

async function startPair() {
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const receivers = { both: await receiverOfTest(), one: await receiverOfTest() }
  const named = (name: keyof typeof receivers) => ({ name, url: receivers[name].url, sharedKey: 'the-key-of-this-endpoint' })
  const start = async (names: readonly (keyof typeof receivers)[]) => {
    const delivery = { schedule: ['10h'], allowNetworks: ['127.0.0.0/8'] }
    const config = writeConfig(temporaryFolder(), NO_CARRIER, { ...(await onPostgres(from)), delivery, endpoints: names.map(named) })
    const replica = await startReplica(config)
    onTestFinished(() => replica[Symbol.asyncDispose]())
    return { ...replica, operate: await operatorOf(replica) }
  }
  const startNaming = () => start(['both', 'one'])
  return { to, receivers, startNaming, namesIt: await startNaming(), lacksIt: await start(['both']) }
}

type Operate = (method: string, path: string) => Promise<Answer>

async function endpointOf(operate: Operate, name: string) {
  const { endpoints } = (await operate('GET', '/relay/endpoints')).body
  if (!Array.isArray(endpoints)) throw new Error('no endpoints')
  return Object(endpoints.find((one) => Object(one).name === name))
}

/** Lists deliveries in any waiting state. A delivery that changes its state between two requests may be listed twice or never, so callers retry. */
async function waitingAt(operate: Operate, endpointId: string) {
  const lists = ['queued', 'retrying', 'held'].map((state) =>
    operate('GET', `/relay/deliveries?endpoint=${endpointId}&state=${state}&limit=100`),
  )
  const found = await Promise.all(lists)
  return found
    .flatMap(({ body: { deliveries } }) => (Array.isArray(deliveries) ? deliveries.map((one) => String(Object(one).id)) : []))
    .sort()
}

/** Starts two replicas, and a backlog for an endpoint that refuses events and that only one replica's config names. */
async function startWithBacklog() {
  const pair = await startPair()
  const { receivers, namesIt, lacksIt } = pair
  receivers.one.answer(() => 500)
  const bodies = Array.from({ length: BACKLOG }, (_, nth) => pushBody({ trackingIds: [`${880_000 + nth}`], location: `Place ${nth}` }))
  for (const [nth, body] of bodies.entries()) {
    expect((await push((nth % 2 === 0 ? namesIt : lacksIt).publicUrl, body)).status).toBe(200)
  }
  await vi.waitFor(() => expect(receivers.both.pushes.length).toBeGreaterThanOrEqual(BACKLOG), LATE)
  const endpoint = await endpointOf(lacksIt.operate, 'one')
  const waiting = await vi.waitFor(async () => {
    const found = await waitingAt(lacksIt.operate, endpoint.id)
    expect(found).toHaveLength(BACKLOG)
    return found
  }, LATE)
  return {
    ...pair,
    expectKept: async ({ operate }: { readonly operate: Operate }, disabledBecause: string | null) => {
      await vi.waitFor(async () => expect(await endpointOf(operate, 'one')).toMatchObject({ id: endpoint.id, disabledBecause }), LATE)
      await vi.waitFor(async () => expect(await waitingAt(operate, endpoint.id)).toEqual(waiting), LATE)
    },
    expectDelivered: async ({ operate }: { readonly operate: Operate }) => {
      receivers.one.answer(() => 200)
      expect((await operate('POST', `/relay/endpoints/${endpoint.id}/retry`)).status).toBe(202)
      await vi.waitFor(async () => expect(await waitingAt(operate, endpoint.id)).toEqual([]), LATE)
      expect(new Set(receivers.one.pushes.map(({ body }) => body.toString()))).toEqual(new Set(bodies.map(String)))
    },
  }
}

test('7.4: an endpoint keeps its backlog in a move while the replica that names it is stopped', async () => {
  const { to, startNaming, namesIt, lacksIt, expectKept, expectDelivered } = await startWithBacklog()
  await namesIt.stop()
  expect(await endedJob(lacksIt.asker, await startMove(lacksIt.asker, to))).toMatchObject({ state: 'done', failure: null })
  await expectKept(lacksIt, 'unnamed')
  // The config of the stopped replica still has the address of the old store.
  const again = await startNaming()
  await expectKept(again, null)
  await expectDelivered(lacksIt)
})

test('7.4: an endpoint that one of two configs names keeps its backlog when the store moves', async () => {
  const { to, namesIt, lacksIt, expectKept, expectDelivered } = await startWithBacklog()
  const mover = byForm(lacksIt, namesIt)
  expect(await endedJob(mover.asker, await startMove(mover.asker, to))).toMatchObject({ state: 'done', failure: null })
  await vi.waitFor(async () => expect(await mover.replicas()).toHaveLength(2), LATE)
  await expectKept(namesIt, null)
  await expectDelivered(lacksIt)
})
