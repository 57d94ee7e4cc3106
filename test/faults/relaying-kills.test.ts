import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CLAIMS_PER_ATTEMPT } from '../../src/core/domain/delivery/delivery.ts'
import { type Random, randomFor } from '../../src/trial/sandbox/parcel-plan.ts'
import { breaches } from '../support/delivery/relaying-ledger.ts'
import { repeats, settledLedger } from '../support/delivery/settled-ledger.ts'
import { type Mood, type MoodyReceiver, startMoodyReceiver } from '../support/network/moody-receiver.ts'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm, LONG } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { changeStoredRows } from '../support/store/stored-rows.ts'

/** The number of kills in one test. `npm run faults` splits two hundred kills over several tests, so that its progress shows. */
const CYCLES = byForm(1, 1, 25)
const STORES = Array.from({ length: byForm(1, 1, 8) }, (_, at) => at + 1)
const AT_ONCE = 16
/** Every tenth event is always refused (`isPoison`). With this number of parcels, each parcel gets some of them. */
const PARCELS = 19
const PER_ENDPOINT = 4
const KEY = 'the-key-of-these-endpoints'
/** Tells whether the endpoint "failing" always refuses this event. */
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

test.each(STORES)(`F11: kill -9 while relaying, ${CYCLES} times, leaves each event delivered or dead, in order (%i)`, async (store) => {
  const { ledger, acknowledged, found, repeated } = await relayUnderKills(
    store,
    CYCLES,
    (cycle) => cycle >= Math.floor(CYCLES / 4) && cycle < CYCLES / 2,
  )
  expect(found).toEqual([])
  expect(acknowledged.length).toBeGreaterThan(CYCLES * PARCELS)
  const dead = ledger.map(({ name, deliveries }) => [name, deliveries.filter(({ state }) => state === 'dead').length] as const)
  const { failing, ...others } = Object.fromEntries(dead)
  // Only events that were always refused are dead. The endpoint that was down for a while lost nothing.
  expect(failing).toBeGreaterThanOrEqual(acknowledged.filter(isPoison).length)
  expect(others).toEqual({ quick: 0, slow: 0, down: 0 })
  // After a kill, the relay repeats deliveries that were sent but not saved. They cannot be more than it had claimed.
  if (LONG) expect(repeated).toBeGreaterThan(0)
  expect(repeated).toBeLessThanOrEqual(CYCLES * PER_ENDPOINT * CLAIMS_PER_ATTEMPT * ledger.length)
})

const always = () => true
/** Selects the last waiting delivery of a parcel. No later delivery would show its loss, but its push was acknowledged. */
const OWED = 'SELECT min(last) FROM (SELECT max(id) AS last FROM delivery WHERE state < 2 GROUP BY endpoint_id, parcel_id)'
const PLANTS = [
  [
    'a delivery that is marked as delivered but was not sent',
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

test.each(PLANTS.slice(0, byForm(0, 0, 4)))('F11: the check for lost and misordered events finds %s', async (_what, sql, breach) => {
  const plant = async (place: string) => expect(await changeStoredRows(place, sql)).toBeGreaterThan(0)
  const { found } = await relayUnderKills(1, 1, always, plant)
  expect(found.length).toBeGreaterThan(0)
  expect(found.filter((one) => !breach.test(one))).toEqual([])
})

/** Pushes to the relay and kills it, several times. Then waits until all deliveries have ended, with all endpoints up. */
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
