import type { Actor, Audited } from '../../../domain/admin/operator-action.ts'
import { createWatchLineReader, WATCH_LINES_MAX, type WatchListFormat } from '../../../domain/admin/watch-list.ts'
import { AppError, lacksRoom, NO_ROOM_TEXT } from '../../../domain/errors.ts'
import type { Relay, Writes } from '../../relay.ts'

export type ImportWatchesPorts = Pick<Relay, 'clock'> & Writes<'watchMany'>

export interface WatchListRequest {
  readonly format: WatchListFormat
  /** The CSV column to read: its name, or its number from 1. Null: the column with a known name. */
  readonly column: string | null
  /** If true, one invalid line refuses the whole list, and up to `ATOMIC_MAX` identifiers are watched all or none. */
  readonly atomic: boolean
  readonly lines: AsyncIterable<string>
  readonly by: Actor
}

export interface WatchListReport {
  /** Empty lines and a line that names the columns included. */
  readonly lines: number
  readonly watched: number
  /** How many watched identifiers got a new parcel. */
  readonly created: number
  /** The number of lines without a valid identifier, or with an identifier of an erased parcel. */
  readonly failed: number
  /** How many of the failed lines name erased parcels. */
  readonly erased: number
  /** The first failed lines, numbered from 1. */
  readonly errors: readonly WatchListError[]
}

/** `reason`: a predicate such as "is not valid JSON". */
export interface WatchListError {
  readonly line: number
  readonly reason: string
}

/** Identifiers in a transaction. Each transaction delays pushes by some seven milliseconds. */
const BATCH = 500
/**
 * The most identifiers of an atomic list in one transaction. It delays pushes by thirty milliseconds; a hundred thousand identifiers would delay
 * them for seconds. A longer atomic list is watched in batches of `BATCH`.
 */
export const ATOMIC_MAX = 2000
const ERRORS_SHOWN = 1000
const RETRY_AFTER_MS = 5000

/**
 * Unless the request is `atomic`, valid lines are watched and invalid lines are reported by number.
 *
 * Throws `bad_request` (no column to read, or an invalid line in an atomic list), `erased` (only if atomic), `body_too_large` (too many lines)
 * and `storage_unavailable`. Each error has the fact `watched`: how many identifiers at the start of the list are watched now.
 */
export function createImportWatches(ports: ImportWatchesPorts): (request: WatchListRequest) => Promise<WatchListReport> {
  return async ({ format, column, atomic, lines, by }) => {
    const read = createWatchLineReader(format, column)
    const errors: WatchListError[] = []
    const tally = { lines: 0, watched: 0, created: 0, failed: 0, erased: 0, errors }
    const identifiers: Named[] = []

    // Read the whole list before writing: writes in between would delay the sender, who might exceed the time limit of the request.
    for await (const text of lines) {
      tally.lines += 1
      if (tally.lines > WATCH_LINES_MAX) throw tooLong()
      const line = read(text)
      if (line.kind === 'refused') throw new AppError('bad_request', `${line.reason} No identifier is watched.`, { facts: { watched: 0 } })
      if (line.kind === 'identifier') identifiers.push({ identifier: line.identifier, line: tally.lines })
      if (line.kind === 'bad') {
        tally.failed += 1
        if (errors.length < ERRORS_SHOWN) errors.push({ line: tally.lines, reason: line.reason })
      }
    }
    if (atomic && tally.failed > 0) throw refused(tally, identifiers.length + tally.failed)
    const size = atomic && identifiers.length <= ATOMIC_MAX ? ATOMIC_MAX : BATCH
    // One time for the whole list, so that its action in the audit trail is found by the time at which a parcel's watch began.
    const nowMs = ports.clock.now()
    const detail = { lines: tally.lines, identifiers: identifiers.length, failed: tally.failed }
    for (let at = 0; at < identifiers.length; at += size) {
      // The list is one order, so only its first batch adds an action to the audit trail.
      const order: Audited = at > 0 ? {} : { action: { atMs: nowMs, by, action: 'parcels.watched', target: null, detail } }
      await watchBatch(ports, { named: identifiers.slice(at, at + size), isAtomic: atomic, nowMs, ...order }, tally)
    }
    return tally
  }
}

interface Named {
  readonly identifier: string
  readonly line: number
}

interface Tally {
  watched: number
  created: number
  failed: number
  erased: number
  readonly errors: WatchListError[]
}

async function watchBatch(
  { write }: Pick<ImportWatchesPorts, 'write'>,
  { named, ...part }: Audited & { readonly named: readonly Named[]; readonly isAtomic: boolean; readonly nowMs: number },
  tally: Tally,
): Promise<void> {
  const identifiers = named.map(({ identifier }) => identifier)
  const results = await write.watchMany({ ...part, identifiers }).catch((cause: unknown) => {
    const why = lacksRoom(cause) ? NO_ROOM_TEXT : 'The store takes no writes now.'
    const message = `${why} The first ${tally.watched} identifiers are watched. Send the whole list again: it does no harm.`
    throw new AppError('storage_unavailable', message, { cause, retryAfterMs: RETRY_AFTER_MS, facts: { watched: tally.watched } })
  })
  if (part.isAtomic && results.includes(null))
    throw new AppError('erased', 'Watching stopped here: the list names a parcel that was erased.', { facts: { watched: tally.watched } })
  for (const [at, result] of results.entries()) {
    if (result === null) {
      tally.failed += 1
      tally.erased += 1
      if (tally.errors.length < ERRORS_SHOWN) tally.errors.push({ line: named[at]?.line ?? 0, reason: 'belongs to an erased parcel' })
      continue
    }
    tally.watched += 1
    if (result.created) tally.created += 1
  }
}

function tooLong(): AppError {
  return new AppError('body_too_large', `A list may have at most ${WATCH_LINES_MAX} lines. None is watched.`, { facts: { watched: 0 } })
}

/** `named`: the number of lines, without empty ones and a header. */
function refused({ failed, errors }: WatchListReport, named: number): AppError {
  return new AppError('bad_request', `Nothing is watched: ${failed} of ${named} lines hold no identifier.`, {
    facts: { watched: 0, failed, errors },
  })
}
