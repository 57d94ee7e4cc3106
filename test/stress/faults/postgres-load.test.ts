import { expect, test } from 'vitest'
import { expectNothingLost, RECOVERY_MS, recovery, startOn } from '../../faults/postgres-world.ts'
import { distinctPushes, startLoad } from '../../support/network/push-load.ts'
import { startWebhookReceiver } from '../../support/network/webhook-receiver.ts'
import { ask, push } from '../../support/relay/relay.ts'
import { inSeconds } from '../../support/relay/relay-process.ts'
import { LONG, onlyLong } from '../../support/runner/long-form.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase, startOwnServer } from '../../support/store/postgres-database.ts'

const KILLS = LONG ? 200 : 5
const PARCELS = 10
const SENDERS = LONG ? 256 : 64
/** The number of requests by each of 64 readers. */
const READS = LONG ? 200 : 20

const endBackend = `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name = 'parcel-relay' order by random() limit 1`

test(`S18: ending ${KILLS} backends at random under load causes 503s and loses no push`, async () => {
  const { url, name } = await createDatabase('nothing')
  const { relay, asker } = await startOn(url)
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(relay.publicUrl, 16, pushes.next)
  await load.untilAnswered(50)
  await withClient(url, async (client) => {
    // Backends are chosen at random, and a push is refused only if its own backend ends. So end more until a push was refused.
    const hasRefused = () => load.answers().some(({ status }) => status !== 200)
    for (let kill = 1; kill <= KILLS || !hasRefused(); kill++) {
      await client.query(endBackend, [name])
      await load.untilAnswered(50 + kill * 30)
    }
  })
  const { accepted, refused } = await expectNothingLost(await load.stop(), pushes, asker)
  expect(refused.length).toBeGreaterThan(0)
  for (const { body } of refused) expect((await push(relay.publicUrl, body)).status).toBe(200)
  const kept = await withClient(url, (client) => client.query<{ count: number }>('select count(*)::integer as count from inbox'))
  expect(kept.rows).toEqual([{ count: accepted.length + refused.length }])
  expect(relay.process.exitCode).toBeNull()
})

onlyLong(test)('a server that is only busy makes nothing fail', async () => {
  const { relay, asker } = await startOn((await createDatabase('nothing')).url)
  const parcels = 500
  const load = startLoad(relay.publicUrl, SENDERS, distinctPushes(parcels).next)
  await load.untilAnswered(2 * parcels)
  const longestMs = await Promise.all(
    Array.from({ length: 64 }, async (_, reader) => {
      let longest = 0
      for (let nth = 0; nth < READS; nth++) {
        const begunMs = performance.now()
        const { status } = await ask(asker.internalUrl, asker.token, `/v1/status/88000${(reader * READS + nth) % parcels}/all`)
        expect(status).toBe(200)
        longest = Math.max(longest, performance.now() - begunMs)
      }
      return longest
    }),
  )
  const pushes = await load.stop()
  expect(pushes.filter(({ status }) => status !== 200)).toEqual([])
  console.log(
    `the longest of ${64 * READS} reads took ${Math.round(Math.max(...longestMs))} ms, of ${pushes.length} pushes ${Math.round(Math.max(...pushes.map(({ tookMs }) => tookMs)))} ms`,
  )
})

const RESTARTS = LONG ? 10 : 1
/** The number of answered pushes before each restart of the server. */
const A_RESTART = 200

test(`S18: over ${RESTARTS} server restarts every event arrives, and each parcel’s are in order`, async () => {
  await using server = await startOwnServer()
  await using receiver = await startWebhookReceiver()
  const { relay, asker } = await startOn(server.url(), {
    ...inSeconds,
    endpoints: [{ name: 'shop', url: receiver.url, sharedKey: 'the-key-of-the-endpoint' }],
    delivery: { schedule: ['100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] },
  })
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(relay.publicUrl, 16, pushes.next)
  const recoveredMs: number[] = []
  for (let restart = 1; restart <= RESTARTS; restart++) {
    await load.untilAnswered(restart * A_RESTART)
    await server.stop(restart % 2 === 0 ? 'fast' : 'immediate')
    await load.untilAnswered((restart + 0.5) * A_RESTART)
    await server.start()
    recoveredMs.push(await recovery(relay, asker))
  }
  const { accepted } = await expectNothingLost(await load.stop(), pushes, asker)
  const arrived = () => new Set(receiver.pushes.map(({ body }) => body.toString()))
  await expect.poll(() => accepted.filter((body) => !arrived().has(body)), { timeout: 60_000, interval: 100 }).toEqual([])
  const sent = new Set(['0'])
  for (const { headers } of receiver.pushes) {
    expect(sent).toContain(headers['relay-previous-sequence'])
    sent.add(headers['relay-sequence'] ?? '')
  }
  console.log(
    `recovered ${recoveredMs.map(Math.round).join(', ')} ms after a start; ${accepted.length} events, ${receiver.pushes.length} posts`,
  )
  expect(recoveredMs.filter((ms) => ms >= RECOVERY_MS)).toEqual([])
})
