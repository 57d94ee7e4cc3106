import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { CLAIMS_PER_ATTEMPT } from '../../src/domain/delivery/delivery.ts'
import { type Random, randomFor } from '../../src/sandbox/random.ts'
import { pushBody } from '../support/builders.ts'
import { operatorOf } from '../support/manage.ts'
import { type Mood, type MoodyReceiver, startMoodyReceiver } from '../support/moody-receiver.ts'
import { distinctPushes, startLoad } from '../support/push-load.ts'
import { push, writeConfig } from '../support/relay.ts'
import { type RunningProcess, runRelay } from '../support/relay-process.ts'
import { breaches, type EndpointLedger, type ToldDelivery } from '../support/relaying-ledger.ts'
import { changeStoredRows } from '../support/stored-rows.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** Two hundred by `npm run faults`, in pieces so that it shows how far it is. */
const LONG = process.env.RELAY_FAULTS === 'long'
const CYCLES = LONG ? 25 : 7
const STORES = Array.from({ length: LONG ? 8 : 1 }, (_, at) => at + 1)
const AT_ONCE = 16
/** Prime to ten, so that what is refused for ever is spread over all of them. */
const PARCELS = 19
const PER_ENDPOINT = 4
const KEY = 'the-key-of-these-endpoints'
/** Nobody listens there: nothing in this test is about polls. */
const NO_CARRIER = 'http://127.0.0.1:9'
/** Of the pushed events, those that one endpoint never takes. */
const isPoison = (body: string): boolean => body.includes('7."')

const MOODS: Readonly<Record<string, (random: Random) => (body: string) => Mood>> = {
  quick: () => () => ({ status: 200, afterMs: 0 }),
  slow: (random) => () => ({ status: 202, afterMs: 20 + Math.floor(random() * 100) }),
  failing: (random) => (body) => {
    const chance = random()
    if (isPoison(body)) return { status: 422, afterMs: 0 }
    if (chance < 0.1) return 'reset'
    return { status: chance < 0.3 ? 503 : 200, afterMs: 0 }
  },
  down: () => () => ({ status: 200, afterMs: 0 }),
}

test.each(STORES)(
  `F11: relaying under kill -9, ${CYCLES} times over on one store: every event is delivered or dead with its reason, in order (%i)`,
  async (store) => {
    const { ledger, acknowledged, found, repeated } = await relayUnderKills(
      store,
      CYCLES,
      (cycle) => cycle >= CYCLES / 4 && cycle < CYCLES / 2,
    )
    expect(found).toEqual([])
    expect(acknowledged.length).toBeGreaterThan(CYCLES * PARCELS)
    const dead = ledger.map(({ name, deliveries }) => [name, deliveries.filter(({ state }) => state === 'dead').length] as const)
    const { failing, ...others } = Object.fromEntries(dead)
    // What was refused for ever is dead; an endpoint that was down for some of the time lost nothing.
    expect(failing).toBeGreaterThanOrEqual(acknowledged.filter(isPoison).length)
    expect(others).toEqual({ quick: 0, slow: 0, down: 0 })
    // Some were between being sent and being marked; never more than were handed out.
    expect(repeated).toBeGreaterThan(0)
    expect(repeated).toBeLessThanOrEqual(CYCLES * PER_ENDPOINT * CLAIMS_PER_ATTEMPT * ledger.length)
  },
  900_000,
)

const always = () => true
/** The last waiting of a parcel that has waited longest: no later one names it, and its push was answered before the kill, so it is owed. */
const OWED = 'SELECT min(last) FROM (SELECT max(id) AS last FROM delivery WHERE state < 2 GROUP BY endpoint_id, parcel_id)'
const PLANTS = [
  [
    'a delivery that is marked and was not sent',
    'UPDATE delivery SET state = 2 WHERE id = (SELECT max(id) FROM delivery WHERE state < 2)',
    /never taken/,
  ],
  ['a parcel that is sent backwards', 'UPDATE delivery SET state = 1, next_attempt_at_ms = -sequence WHERE state < 2', /came after/],
  ['a delivery that is gone', `DELETE FROM delivery WHERE id = (${OWED})`, /nothing was queued/],
  [
    'a link that is wrong',
    'UPDATE delivery SET previous_sequence = 1 WHERE id = (SELECT max(id) FROM delivery WHERE state < 2)',
    /before it/,
  ],
] as const

test.each(LONG ? PLANTS : PLANTS.slice(0, 2))(
  'F11: the same check finds %s',
  async (_what, sql, breach) => {
    const plant = async (place: string) => expect(await changeStoredRows(place, sql)).toBeGreaterThan(0)
    const { found } = await relayUnderKills(1, 1, always, plant)
    expect(found.length).toBeGreaterThan(0)
    expect(found.filter((one) => !breach.test(one))).toEqual([])
  },
  180_000,
)

/** Pushes, kills and starts anew; then everything comes to its end, with all endpoints up. */
async function relayUnderKills(seed: number, cycles: number, isDown: (cycle: number) => boolean, plant = async (_place: string) => {}) {
  const folder = temporaryFolder()
  const random = randomFor(seed, 'when to kill')
  await using stack = new AsyncDisposableStack()
  const receivers = new Map<string, MoodyReceiver>()
  for (const [name, moodOf] of Object.entries(MOODS)) {
    receivers.set(name, stack.use(await startMoodyReceiver(KEY, moodOf(randomFor(seed, name)))))
  }
  const config = writeConfig(folder, NO_CARRIER, {
    endpoints: [...receivers].map(([name, { url }]) => ({ name, url, sharedKey: KEY })),
    delivery: { schedule: ['50ms', '100ms', '200ms'], timeout: '3s', perEndpoint: PER_ENDPOINT, allowNetworks: ['127.0.0.0/8'] },
  })
  const pushes = distinctPushes(PARCELS)
  const acknowledged: string[] = []
  for (let cycle = 0; cycle < cycles; cycle++) {
    receivers.get('down')?.setDown(isDown(cycle))
    await using relay = await runRelay(config)
    const load = startLoad(relay.publicUrl, AT_ONCE, pushes.next)
    await load.untilAnswered(PARCELS * 2 + Math.floor(random() * 60))
    relay.process.kill('SIGKILL')
    const answers = await load.stop()
    expect(await relay.ended).toEqual({ code: null, signal: 'SIGKILL' })
    acknowledged.push(...answers.filter(({ status }) => status === 200).map(({ body }) => body))
  }
  await plant(join(folder, 'relay.db'))
  receivers.get('down')?.setDown(false)
  await using relay = await runRelay(config)
  const ledger = await settledLedger(relay, receivers)
  const found = breaches({ acknowledged, parcelOf: (body) => pushes.parcels([body])[0] ?? '', endpoints: ledger })
  return { ledger, acknowledged, found, repeated: ledger.map(repeats).reduce((sum, count) => sum + count, 0) }
}

/** How many events came again after they had been taken. */
function repeats({ arrivals }: EndpointLedger): number {
  const taken = new Set<number>()
  return arrivals.filter(({ sequence, accepted }) => {
    const again = taken.has(sequence)
    if (accepted) taken.add(sequence)
    return again
  }).length
}

/** What the relay tells of its deliveries once none is left to make, beside what their endpoints saw. */
async function settledLedger(relay: RunningProcess, receivers: ReadonlyMap<string, MoodyReceiver>): Promise<readonly EndpointLedger[]> {
  const operate = await operatorOf(relay)
  const listed = async (query: string): Promise<readonly Listed[]> => {
    const all: Listed[] = []
    for (let cursor = ''; cursor !== 'null'; ) {
      const { body } = await operate('GET', `/relay/deliveries?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`)
      if (Array.isArray(body.deliveries)) all.push(...body.deliveries)
      cursor = String(body.next)
    }
    return all
  }
  const waiting = async () => (await Promise.all(['queued', 'retrying', 'held'].map((state) => listed(`state=${state}`)))).flat()
  // An endpoint that takes nothing more is down, as far as the relay can know, and what it refused does not die: so it gets some more.
  let more = 0
  const another = () => pushBody({ trackingIds: ['770000'], location: 'Elsewhere', eventTime: new Date(Date.now() + more++).toISOString() })
  const isOver = async () => {
    const left = await waiting()
    if (left.length > 0) await push(relay.publicUrl, another())
    // An endpoint full of what it refuses pauses up to 5 minutes between probes: an operator does not wait for that.
    for (const id of new Set(left.map(({ endpoint }) => endpoint.id))) await operate('POST', `/relay/endpoints/${id}/retry`)
    expect(left.map(({ endpoint, state, nextAttemptAt }) => `${endpoint.name} ${state} ${nextAttemptAt}`)).toEqual([])
  }
  await vi.waitFor(isOver, { timeout: 300_000, interval: 500 })
  const deliveries = await listed('')
  return [...receivers].map(([name, { arrivals }]) => ({
    name,
    arrivals,
    deliveries: deliveries.filter(({ endpoint }) => endpoint.name === name),
  }))
}

interface Listed extends ToldDelivery {
  readonly nextAttemptAt: string | null
  readonly endpoint: { readonly id: string; readonly name: string }
}
