import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { openWriteSide } from '../../src/assembly/open-write-side.ts'
import type { SettledAttempt } from '../../src/core/domain/delivery/dispatch-round.ts'
import { parsePush } from '../../src/core/domain/ingest/parse-push.ts'
import type { WriteSide } from '../../src/core/flow/write-side.ts'
import type { Retention } from '../../src/upkeep/retention/retention.rules.ts'
import { figure } from '../figures.ts'
import { EVENTS_PER_PARCEL, eventBody } from '../load/event.ts'
import { endpointNamed, POLICY } from '../stores/prefill.ts'
import type { Bench, SuiteReport } from '../suite.ts'

const DAY_MS = 86_400_000
const STARTS_MS = Date.UTC(2026, 0, 1, 12)
const YEAR_DAYS = 365
const QUICK_DAYS = 50
/** The share of a full store's events that comes each day: a thousand of a million. */
const EVENTS_PER_DAY = 1 / 1000
const PARCELS_A_DAY_MIN = 2
const BATCH = 2000
const CLAIMS = 1000
/** The number of days with a line in the output. */
const LINES = 6
const MB = 1024 ** 2

/** Each period is an eighth or a sixteenth of the time, so that everything kept is replaced several times. */
function retentionOf(days: number): Retention {
  const [long, short] = [Math.floor(days / 8) * DAY_MS, Math.floor(days / 16) * DAY_MS]
  return { rawMs: short, historyMs: long, deliveriesMs: short, feedMs: short, auditMs: long, reportsMs: long, heldMs: long }
}

/**
 * Simulates a year in a store. Each day brings new parcels with texts that no earlier day had, all events are delivered, and a retention pass
 * follows. If the store kept anything forever, it would grow.
 */
export async function simulateYear({ settings, folder, say }: Bench): Promise<SuiteReport> {
  const days = settings.quick ? QUICK_DAYS : YEAR_DAYS
  const events = settings.scale.storedParcels * EVENTS_PER_PARCEL
  const parcels = Math.max(PARCELS_A_DAY_MIN, Math.round((events * EVENTS_PER_DAY) / EVENTS_PER_PARCEL))
  const own = mkdtempSync(join(folder, 'year-'))
  const path = join(own, 'relay.db')
  const retention = retentionOf(days)
  let nowMs = STARTS_MS
  const write = await openWriteSide(
    { sqlitePath: path, ...POLICY, record: rulesOf(retention), retention },
    { now: () => nowMs, monotonic: () => nowMs },
    { error: (fields) => console.error(fields) },
  )
  const sizes: number[] = []
  try {
    await write.syncEndpoints([endpointNamed('shop')], nowMs, null)
    for (let day = 0; day < days; day++) {
      await recordDay(write, { day, parcels, nowMs })
      await deliverAll(write, nowMs)
      nowMs += DAY_MS
      while (!(await write.prune({ nowMs })).isDone);
      sizes.push(bytesOf(path))
      if (day % Math.ceil(days / LINES) === 0) say(`day ${day}: ${((sizes.at(-1) ?? 0) / MB).toFixed(1)} MB`)
    }
  } finally {
    await write.close()
  }
  // The first day on which everything from the first day is older than the longest period.
  const full = retention.historyMs / DAY_MS + 1
  const [first = Number.NaN, last = Number.NaN] = [sizes[full], sizes.at(-1)]
  assertReplaced(path, full * parcels)
  rmSync(own, { recursive: true })
  const name = `years: file size after ${days} days with retention / after the first ${full}, ${parcels * EVENTS_PER_PARCEL} events a day`
  const megabytes = (bytes: number) => (bytes / MB).toFixed(1)
  return {
    figures: [figure(name, [last / first], { unit: 'x', better: 'lower', must: 1.1, aim: 1.02 })],
    observations: [{ name: `years: file of ${megabytes(first)} MB after ${full} days, ${megabytes(last)} MB after ${days}`, facts: {} }],
  }
}

/** No parcel is polled, so each is stale as soon as it is recorded. */
function rulesOf({ historyMs }: Retention) {
  const { cadence, ...rest } = POLICY.record
  return { ...rest, cadence: { ...cadence, staleAfterMs: 1 }, historyRetentionMs: historyMs }
}

interface Day {
  readonly day: number
  readonly parcels: number
  readonly nowMs: number
}

async function recordDay(write: WriteSide, { day, parcels, nowMs }: Day): Promise<void> {
  const bodies = Array.from({ length: parcels * EVENTS_PER_PARCEL }, (_, at) =>
    bodyOf({ parcel: day * parcels + (at % parcels), nth: Math.floor(at / parcels), day, nowMs }),
  )
  for (let from = 0; from < bodies.length; from += BATCH) {
    const batch = bodies.slice(from, from + BATCH)
    await write.record(batch.map((body) => parsePush({ body, contentEncoding: null, receivedAtMs: nowMs, keyIndex: 0 })))
  }
}

/** Makes an event whose texts are new on its day, and in the first event of a parcel new with the parcel. */
function bodyOf({
  parcel,
  nth,
  day,
  nowMs,
}: {
  readonly parcel: number
  readonly nth: number
  readonly day: number
  readonly nowMs: number
}) {
  const event: Record<string, unknown> = JSON.parse(eventBody(parcel, nth, nowMs).toString())
  const words = nth === 0 ? `Booked for customer ${parcel}` : `Route ${day}`
  return Buffer.from(JSON.stringify({ ...event, detailedStatusDescription: [{ value: words, languageCode: 'en' }] }))
}

/** Delivers everything that waits, without a network. */
async function deliverAll(write: WriteSide, nowMs: number): Promise<void> {
  let settled: readonly SettledAttempt[] = []
  for (;;) {
    const { claimed } = await write.dispatchRound({ settled, inFlight: {}, allowance: {}, claimsMax: CLAIMS, nowMs })
    if (claimed.length === 0) return
    settled = claimed.map(({ body: _body, previousSequence: _previous, ...delivery }) => ({
      ...delivery,
      result: { kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() },
      atMs: nowMs,
      random: 0.5,
    }))
  }
}

/** Returns the size of the file after a checkpoint. */
function bytesOf(path: string): number {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    return Number(db.pragma('page_count', { simple: true })) * Number(db.pragma('page_size', { simple: true }))
  } finally {
    db.close()
  }
}

/** Expects that the store has everything within its period, and nothing older. */
function assertReplaced(path: string, parcels: number): void {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    const kept = Number(db.prepare('SELECT count(*) FROM parcel').pluck().get())
    equal(Math.abs(kept - parcels) <= parcels / 10, true, `retention has left about ${parcels} parcels; it left ${kept}`)
  } finally {
    db.close()
  }
}
