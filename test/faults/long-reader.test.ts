import { setTimeout as wait } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { startMoodyReceiver } from '../support/moody-receiver.ts'
import { onPostgres } from '../support/on-postgres.ts'
import { withClient } from '../support/postgres-client.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { distinctPushes } from '../support/push-load.ts'
import { push, writeConfig } from '../support/relay.ts'
import { runRelay } from '../support/relay-process.ts'
import { temporaryFolder } from '../support/temporary.ts'

const isLong = process.env.RELAY_FAULTS === 'long'
/** How long the transaction is held open, and over how much of it the times are taken. */
const READ_MS = isLong ? 300_000 : 8000
const WINDOW_MS = isLong ? 30_000 : 3000
/** Well below what can be delivered, or the times would tell of a queue. */
const EVERY_MS = isLong ? 10 : 20
const KEY = 'the-key-of-the-endpoint'

const medianOf = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

test(
  `a transaction that is held open for ${READ_MS / 1000} s beside load does not double the time in which what is due is found`,
  async () => {
    const { url } = await createDatabase('nothing')
    const arrivedMs = new Map<string, number>()
    await using receiver = await startMoodyReceiver(KEY, (body) => {
      arrivedMs.set(body, performance.now())
      return { status: 200, afterMs: 0 }
    })
    await using relay = await runRelay(
      writeConfig(temporaryFolder(), 'http://127.0.0.1:9', {
        ...(await onPostgres(url)),
        endpoints: [{ name: 'shop', url: receiver.url, sharedKey: KEY }],
        delivery: { allowNetworks: ['127.0.0.0/8'] },
      }),
    )
    const pushes = distinctPushes(1000)
    /** Pushes at a steady pace for so long; the median time from an answer to the arrival at the endpoint. */
    async function load(ms: number): Promise<number> {
      const answered: { readonly body: string; readonly atMs: number }[] = []
      const begun: Promise<void>[] = []
      const untilMs = performance.now() + ms
      while (performance.now() < untilMs) {
        const body = pushes.next()
        begun.push(
          push(relay.publicUrl, body).then((answer) => {
            expect(answer.status).toBe(200)
            answered.push({ body, atMs: performance.now() })
          }),
        )
        await wait(EVERY_MS)
      }
      await Promise.all(begun)
      await vi.waitFor(() => expect(answered.filter(({ body }) => !arrivedMs.has(body))).toEqual([]), { timeout: 10_000 })
      return medianOf(answered.map(({ body, atMs }) => Math.max(0, (arrivedMs.get(body) ?? 0) - atMs)))
    }
    // The first pushes find everything cold.
    await load(WINDOW_MS)
    const usualMs = await load(WINDOW_MS)
    await withClient(url, async (client) => {
      await client.query('begin isolation level repeatable read')
      await client.query('select count(*) from delivery')
      await load(READ_MS - WINDOW_MS)
      const besideMs = await load(WINDOW_MS)
      console.log(`found after ${usualMs.toFixed(1)} ms, beside a long reader after ${besideMs.toFixed(1)} ms`)
      // What is a millisecond or two on an idle machine is not told apart on a busy one.
      expect(besideMs).toBeLessThan(2 * usualMs + 10)
      await client.query('commit')
    })
  },
  60_000 + 2 * READ_MS,
)
