import { createWatchLineReader, WATCH_LINES_MAX, type WatchListFormat } from '../../domain/admin/watch-list.ts'
import { AppError } from '../../domain/errors.ts'
import type { Clock } from '../ports.ts'
import type { WriteSide } from '../write-side.ts'

export interface ImportWatchesPorts {
  readonly write: Pick<WriteSide, 'watchMany'>
  readonly invalidate: (parcelIds: readonly number[]) => void
  readonly clock: Clock
}

export interface WatchListRequest {
  readonly format: WatchListFormat
  /** A list with one bad line watches nothing. Up to `ATOMIC_MAX` identifiers, neither does one that the store fails at. */
  readonly atomic: boolean
  readonly lines: AsyncIterable<string>
}

/** What came of a list. */
export interface WatchListReport {
  /** Lines that were read, empty ones included. */
  readonly lines: number
  /** Identifiers that are watched now. */
  readonly watched: number
  /** Of those, how many no parcel had. */
  readonly created: number
  /** Lines that are no identifier. */
  readonly failed: number
  /** The first of those, by number from 1. */
  readonly errors: readonly WatchListError[]
}

export interface WatchListError {
  readonly line: number
  readonly reason: string
}

/** Identifiers watched in one transaction: what pushes wait for meanwhile takes some seven milliseconds. */
const BATCH = 500
/** As many as are all or none whatever the store does: thirty milliseconds. A hundred thousand would keep pushes waiting for seconds. */
export const ATOMIC_MAX = 2000
const ERRORS_SHOWN = 1000
const RETRY_AFTER_MS = 5000

/**
 * Watches a list of identifiers, many in a transaction. By default each line is on its own: the good ones are watched and the bad ones told.
 * Throws `bad_request` (atomic, and a line is bad), `body_too_large` (too many lines) and `storage_unavailable`; its
 * facts say how many are watched already, the first ones of the list, and sending the same list again does no harm.
 */
export function createImportWatches(ports: ImportWatchesPorts): (request: WatchListRequest) => Promise<WatchListReport> {
  return async ({ format, atomic, lines }) => {
    const read = createWatchLineReader(format)
    const errors: WatchListError[] = []
    const tally = { lines: 0, watched: 0, created: 0, failed: 0, errors }
    const identifiers: string[] = []

    // Read to its end before anything is done: a sender that has to wait while we write runs into the time a request may take.
    for await (const text of lines) {
      tally.lines += 1
      if (tally.lines > WATCH_LINES_MAX) throw tooLong()
      const line = read(text)
      if (line.kind === 'identifier') identifiers.push(line.identifier)
      if (line.kind === 'bad') {
        tally.failed += 1
        if (errors.length < ERRORS_SHOWN) errors.push({ line: tally.lines, reason: line.reason })
      }
    }
    if (atomic && tally.failed > 0) throw refused(tally)
    const size = atomic && identifiers.length <= ATOMIC_MAX ? ATOMIC_MAX : BATCH
    for (let at = 0; at < identifiers.length; at += size) await watchBatch(ports, identifiers.slice(at, at + size), tally)
    return tally
  }
}

async function watchBatch(
  { write, invalidate, clock }: ImportWatchesPorts,
  identifiers: readonly string[],
  tally: { watched: number; created: number },
): Promise<void> {
  const watched = await write.watchMany({ identifiers, nowMs: clock.now() }).catch((cause: unknown) => {
    const message = `The store takes no writes now. The first ${tally.watched} are watched; send the list again.`
    throw new AppError('storage_unavailable', message, { cause, retryAfterMs: RETRY_AFTER_MS, facts: { watched: tally.watched } })
  })
  invalidate(watched.map(({ parcelId }) => parcelId))
  tally.watched += watched.length
  tally.created += watched.filter(({ created }) => created).length
}

function tooLong(): AppError {
  return new AppError('body_too_large', `A list may have at most ${WATCH_LINES_MAX} lines. None is watched.`, { facts: { watched: 0 } })
}

function refused({ lines, failed, errors }: WatchListReport): AppError {
  return new AppError('bad_request', `Nothing is watched: ${failed} of ${lines} lines hold no identifier.`, {
    facts: { watched: 0, failed, errors },
  })
}
