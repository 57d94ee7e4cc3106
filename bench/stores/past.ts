import { copyFileSync, existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { openWriteSide } from '../../src/assembly/open-write-side.ts'
import { systemClock } from '../../src/core/runtime/system-clock.ts'
import { sqlite } from '../../src/upkeep/sqlite-engine.ts'
import { contentsOf } from './contents.ts'
import { assertFilled, fillStore, makeAt, makeOncePerVersion, POLICY } from './prefill.ts'

/** The only endpoint of the store, to which each event has been delivered. */
export const PAST_ENDPOINT = 'endpoint-1'

const DAY_MS = 86_400_000
/** Older than every default of `retention`, so that a pass ordered by an operator removes everything. */
const AGE_MS = 500 * DAY_MS

export interface PastStore {
  readonly parcels: number
  /** Where to keep the loaded store, whatever the version of the code; null: it is kept per version. */
  readonly keep: string | null
  say(text: string): void
}

/**
 * Copies to `path` a store of very old parcels: all events were delivered, and nothing has happened since. The original is written only once.
 * Resolves with the number of parcels. The last ones have only some of their events.
 */
export async function copyPastStore({ parcels, keep, say }: PastStore, path: string): Promise<number> {
  const load = (place: string) => loadPast(place, parcels, say)
  if (keep !== null && !existsSync(keep)) await makeAt(keep, load)
  copyFileSync(keep ?? (await makeOncePerVersion(`past-${parcels}`, load)), path)
  return contentsOf(path).parcels
}

async function loadPast(place: string, parcels: number, say: (text: string) => void): Promise<void> {
  const atMs = Date.now() - AGE_MS
  await fillStore({ place, engine: sqlite, parcels, endpoints: [PAST_ENDPOINT], atMs, say })
  assertFilled(place, parcels)
  await markThen(place, atMs + 1)
  const db = new Database(place, { fileMustExist: true })
  // Write this directly, because the relay would have to send a million deliveries, and poll each parcel until it is stale. As in use, few
  // deliveries are queued in the same millisecond.
  db.exec(`
    BEGIN;
    UPDATE delivery SET queued_at_ms = queued_at_ms + id / 20;
    UPDATE delivery SET state = 2, attempts = 1, settled_at_ms = queued_at_ms,
      accepted_at_ms = queued_at_ms, accepted_duration_ms = 5, accepted_status = 200;
    UPDATE parcel SET next_poll_at_ms = NULL, stopped = 'stale';
    COMMIT;
  `)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
}

/** Runs a retention pass at that time. It removes nothing, but leaves a mark, from which later passes know the age of the data. */
async function markThen(place: string, nowMs: number): Promise<void> {
  const clock = { ...systemClock, now: () => nowMs }
  const write = await openWriteSide({ sqlitePath: place, ...POLICY }, clock, { error: (fields) => console.error(fields) })
  while (!(await write.prune({ nowMs })).isDone);
  await write.close()
}
