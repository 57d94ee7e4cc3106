import type { Pool, PoolClient } from 'pg'
import { expect, test } from 'vitest'
import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import type { ConfiguredEndpoint } from '../../../src/core/domain/delivery/endpoint-state.ts'
import type { WriteSide } from '../../../src/core/flow/write-side.ts'
import { createPostgresWriter } from '../../../src/server/postgres/postgres.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { createPostgresWriteStore } from '../../../src/server/postgres/postgres-write-store.ts'
import { endpointSettings } from '../../support/delivery/stored-endpoint.ts'
import { aPoll, pushBody } from '../../support/history/builders.ts'
import { strictLog } from '../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { NOON } from '../../support/runner/constants.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'
import { changeStoredRows, storedRows } from '../../support/store/stored-rows.ts'
import { incomingPush } from '../../support/store/write-side.ts'

const LOCKS = /(?:update "?counter"?|from "?counter"? where "?name"? = 'sequence' for)/

/** Counts the transactions that lock the counter of sequences, and the round trips that they make while it is locked. */
function watchCounter(pool: Pool) {
  const seen = { takes: 0, trips: 0 }
  pool.on('connect', (client: PoolClient) => {
    const query = client.query.bind(client)
    let held: 'no' | 'waits' | 'heard' = 'no'
    const watched = (asked: { readonly text: string } | string): unknown => {
      const text = typeof asked === 'string' ? asked : asked.text
      if (held === 'heard') seen.trips += 1
      if (held === 'no' && LOCKS.test(text) && !text.includes("'orders'")) {
        seen.takes += 1
        held = 'waits'
      }
      if (/^(?:commit|rollback)/.test(text)) held = 'no'
      const isHeld = held !== 'no'
      const sent: Promise<unknown> = Promise.resolve(Reflect.apply(query, client, [asked]))
      if (isHeld) {
        const hear = () => {
          if (held === 'waits') held = 'heard'
        }
        sent.then(hear, hear)
      }
      return sent
    }
    Object.assign(client, { query: watched })
  })
  return seen
}

async function open() {
  const { url } = await createDatabase()
  const pool = openTestPool(url, 4)
  const seen = watchCounter(pool)
  const store = createPostgresWriteStore(createPostgresWriter(pool, { named: true }))
  const engine = { ...postgres, openWriteStore: async () => ({ ...store, close: async () => undefined }) }
  const clock = { now: () => NOON, monotonic: () => 0 }
  const writes = await openWriteSide({ sqlitePath: url, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
  return { writes, seen, url }
}

const pushOf = (id: string, minute: number) =>
  incomingPush(pushBody({ trackingIds: [id], eventTime: new Date(NOON - minute * 60_000).toISOString() }), NOON)
const configured = (name: string, backfill = false): ConfiguredEndpoint => ({ ...endpointSettings, name, backfill })

/** Lists the work that may take numbers from the counter or change endpoints, by name. */
async function everything(writes: WriteSide, url: string): Promise<Readonly<Record<string, () => Promise<unknown>>>> {
  const id = await writes.reserveEndpoint(NOON)
  const later = await writes.reserveEndpoint(NOON)
  const operator = 'http://operator.internal/'
  const named = ['one', 'two', 'three'].map((name) => configured(name))
  const round = { inFlight: {}, allowance: {}, claimsMax: 20, nowMs: NOON }
  const result = { kind: 'rejected', status: 410, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() } as const
  return {
    'a batch of pushes': () => writes.record([pushOf('1001', 1), pushOf('1002', 2), pushOf('1003', 3)]),
    'a poll': () => writes.record([{ kind: 'poll', observation: aPoll({ askedAtMs: NOON }), watch: true }]),
    'a push that is not understood': () => writes.record([incomingPush(Buffer.from('nonsense'), NOON)]),
    'endpoints of a config': () => writes.syncEndpoints(named, NOON, operator),
    'the same config again': () => writes.syncEndpoints(named, NOON, operator),
    'another config': () => writes.syncEndpoints([configured('one', true), configured('four')], NOON, operator),
    'an endpoint that is added': () =>
      writes.addEndpoint({ id, settings: { ...endpointSettings, name: 'added', backfill: true }, key: 'sealed', from: null, nowMs: NOON }),
    'an endpoint that starts further back': () =>
      writes.addEndpoint({ id: later, settings: { ...endpointSettings, name: 'later' }, key: 'sealed', from: 1, nowMs: NOON }),
    'the feed that is queued for it': () => writes.replayFeed({ limit: 2, nowMs: NOON }),
    'the end of the feed': () => writes.replayFeed({ limit: 100, nowMs: NOON }),
    'an endpoint that is changed': () => writes.changeEndpoint({ id, change: { backfill: false }, key: null, nowMs: NOON }),
    'an event for operators': () => writes.recordOperatorEvent({ event: 'credentials_refused' }, NOON),
    'attempts that disable their endpoints': async () => {
      const { claimed } = await writes.dispatchRound({ ...round, settled: [] })
      const settled = claimed.map(({ body: _body, previousSequence: _previous, ...rest }) => ({ ...rest, atMs: NOON, random: 0.5, result }))
      await writes.dispatchRound({ ...round, settled })
    },
    'a language that was asked': () =>
      writes.noteLanguageAsked({ parcelId: 20_000, language: 'sv', knownTo: 0, answer: { language: 'en', askedAtMs: NOON } }),
    'a clock that was put back': () =>
      writes.shiftSchedule({ byMs: 1000, sinceMs: NOON - 1000, nowMs: NOON - 1000, afterParcelId: 0, limit: 100 }),
    'a push that is reprocessed, and understood by now': async () => {
      await changeStoredRows(url, 'update inbox set body = ? where state = 1', pushBody({ trackingIds: ['9001'] }))
      const [held] = await storedRows<{ id: number }>(url, 'select id from inbox where state = 1')
      await writes.reprocess({ inboxId: held?.id ?? 0, nowMs: NOON })
    },
    'an endpoint that is removed': () => writes.removeEndpoint({ id, nowMs: NOON }),
    'what is learnt about the carrier': () => writes.checkpointModel(),
  }
}

const namesOf = (counts: Readonly<Record<string, number>>, wanted: (count: number) => boolean) =>
  Object.keys(counts).filter((name) => wanted(counts[name] ?? 0))

test('no transaction waits for an answer of the server after it has locked the counter', async () => {
  const { writes, seen, url } = await open()
  const trips: Record<string, number> = {}
  const takes: Record<string, number> = {}
  for (const [name, work] of Object.entries(await everything(writes, url))) {
    const before = { ...seen }
    await work()
    trips[name] = seen.trips - before.trips
    takes[name] = seen.takes - before.takes
  }
  expect(namesOf(trips, (count) => count > 0)).toEqual([])
  // The work listed here needs no number. All other work must lock the counter, or this test would show nothing.
  expect(namesOf(takes, (count) => count === 0)).toEqual([
    'a push that is not understood',
    'the same config again',
    'the feed that is queued for it',
    'a language that was asked',
    'what is learnt about the carrier',
  ])
})

test('only joins hold the counter during a round trip (decision 0018)', async () => {
  const { writes, seen } = await open()
  await writes.record([pushOf('1001', 1), pushOf('1002', 2)])
  const before = seen.trips
  await writes.record([incomingPush(pushBody({ trackingIds: ['1001', '1002'] }), NOON)])
  expect(seen.trips).toBeGreaterThan(before)
})
