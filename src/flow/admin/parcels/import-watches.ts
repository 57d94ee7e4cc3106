import type { Actor, Audited } from '../../../domain/admin/operator-action.ts'
import { createWatchLineReader, WATCH_LINES_MAX, type WatchListFormat } from '../../../domain/admin/watch-list.ts'
import { AppError } from '../../../domain/errors.ts'
import type { Clock } from '../../ports.ts'
import type { WriteSide } from '../../write-side.ts'

export interface ImportWatchesPorts {
  readonly write: Pick<WriteSide, 'watchMany'>
  readonly clock: Clock
}

export interface WatchListRequest {
  readonly format: WatchListFormat
  /** The column of a CSV list to read, by its name or its number from 1; null: the column with a known name. */
  readonly column: string | null
  /** Whether an invalid line refuses the whole list. If so, up to `ATOMIC_MAX` identifiers are watched in one transaction: all or none. */
  readonly atomic: boolean
  readonly lines: AsyncIterable<string>
  readonly by: Actor
}

export interface WatchListReport {
  /** The number of lines, empty lines included. */
  readonly lines: number
  /** The number of identifiers that are now watched. */
  readonly watched: number
  /** How many of the watched identifiers belong to new parcels. */
  readonly created: number
  /** The number of lines without a valid identifier, or with one that belongs to an erased parcel. */
  readonly failed: number
  /** How many of the failed lines name erased parcels. */
  readonly erased: number
  /** The first of the failed lines, with line numbers from 1. */
  readonly errors: readonly WatchListError[]
}

/** An invalid line. `reason` is a predicate such as "is not valid JSON". */
export interface WatchListError {
  readonly line: number
  readonly reason: string
}

/** One transaction watches this many identifiers, and delays pushes by some seven milliseconds. */
const BATCH = 500
/**
 * An atomic list of up to this many identifiers is watched in one transaction, which delays pushes by thirty milliseconds. A transaction for a
 * hundred thousand identifiers would delay pushes for seconds.
 */
export const ATOMIC_MAX = 2000
const ERRORS_SHOWN = 1000
const RETRY_AFTER_MS = 5000

/**
 * Creates the import of watch lists. Unless the request is `atomic`, valid lines are watched and invalid lines are reported by number.
 *
 * Throws `bad_request` if there is no column to read, or if an atomic list has an invalid line. Throws `erased` (if atomic), `body_too_large`
 * (too many lines) and `storage_unavailable`. The error's fact `watched`: how many identifiers at the start of the list are watched now.
 */
export function createImportWatches(ports: ImportWatchesPorts): (request: WatchListRequest) => Promise<WatchListReport> {
  return async ({ format, column, atomic, lines, by }) => {
    const read = createWatchLineReader(format, column)
    const errors: WatchListError[] = []
    const tally = { lines: 0, watched: 0, created: 0, failed: 0, erased: 0, errors }
    const identifiers: Named[] = []

    // Read the whole list before writing. If each write delayed the reading, the sender might exceed the time limit of the request.
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
    if (atomic && tally.failed > 0) throw refused(tally)
    const size = atomic && identifiers.length <= ATOMIC_MAX ? ATOMIC_MAX : BATCH
    const detail = { lines: tally.lines, identifiers: identifiers.length, failed: tally.failed }
    for (let at = 0; at < identifiers.length; at += size) {
      // The whole list is one order, so only its first part adds an action to the audit trail.
      const order: Audited = at > 0 ? {} : { action: { atMs: ports.clock.now(), by, action: 'parcels.watched', target: null, detail } }
      await watchBatch(ports, { named: identifiers.slice(at, at + size), isAtomic: atomic, ...order }, tally)
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
  { write, clock }: ImportWatchesPorts,
  { named, ...part }: Audited & { readonly named: readonly Named[]; readonly isAtomic: boolean },
  tally: Tally,
): Promise<void> {
  const identifiers = named.map(({ identifier }) => identifier)
  const results = await write.watchMany({ ...part, identifiers, nowMs: clock.now() }).catch((cause: unknown) => {
    const message = `The store takes no writes now. The first ${tally.watched} identifiers are watched. Send the whole list again: it does no harm.`
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

function refused({ lines, failed, errors }: WatchListReport): AppError {
  return new AppError('bad_request', `Nothing is watched: ${failed} of ${lines} lines hold no identifier.`, {
    facts: { watched: 0, failed, errors },
  })
}
