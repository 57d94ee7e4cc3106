import type { ActionName, Actor, Audited, OperatorAction } from '../../core/domain/admin/operator-action.ts'
import { createWatchLineReader, WATCH_LINES_MAX, type WatchListFormat } from '../../core/domain/admin/parcel-list.ts'
import { AppError, lacksRoom, NO_ROOM_TEXT } from '../../core/domain/errors.ts'
import type { OrderPart } from '../../core/domain/history/order-context.ts'
import { readIdentifier } from '../../core/domain/identifiers.ts'
import type { DuePoll } from '../../core/domain/polling/poll.ts'
import type { Relay, Writes } from '../../core/flow/relay-part.ts'

/** How a poll that an operator has ordered ends. */
type PollEnd = 'recorded' | 'unknown' | 'unusable' | 'unavailable'

export interface ParcelCommandsPorts
  extends Pick<Relay, 'clock'>,
    Writes<'watch' | 'unwatch' | 'claimPoll' | 'recordAction' | 'erasedAtMs'> {
  readonly refresh: { refreshNow(due: DuePoll): Promise<PollEnd> }
  /** Asks the carrier about an identifier that no parcel has. Throws `erased`. */
  readonly fetchUnknown: (identifier: string, operator: string) => Promise<PollEnd>
  /** Marks a parcel as being polled while `work` runs. */
  readonly underWay: { during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value> }
  /** Returns a sentence that says why the carrier cannot be asked now, and until when; '': not known. */
  readonly whyNotAsked: () => string
  /** Returns a clause that says what the carrier has answered since a time that cannot be used; '': not known. */
  readonly whyUnusable: (sinceMs: number) => string
}

/**
 * The orders that operators give about parcels (CONTRACT, `/relay/parcels`). Identifiers are raw path text; a malformed one throws
 * `bad_tracking_number`.
 */
export type ParcelCommands = ReturnType<typeof createParcelCommands>

/** A refreshed parcel gets no scheduled poll for this long. It gets none while `underWay` lists it, either. */
const LEASE_MS = 60_000
const RETRY_AFTER_MS = 30_000

export function createParcelCommands({ write, refresh, fetchUnknown, underWay, whyNotAsked, whyUnusable, clock }: ParcelCommandsPorts) {
  const orderOf = (by: Actor, action: ActionName, identifier: string): OperatorAction => ({
    atMs: clock.now(),
    by,
    action,
    target: { kind: 'parcel', id: identifier },
    detail: {},
  })
  return {
    /** Watches an identifier from now on. `created`: its parcel is new. */
    async watch(text: string, by: Actor): Promise<{ readonly identifier: string; readonly created: boolean }> {
      const identifier = readIdentifier(text)
      const watched = await write.watch({ identifier, nowMs: clock.now(), action: orderOf(by, 'parcel.watched', identifier) })
      if (watched === null) {
        const erasedAtMs = await write.erasedAtMs({ identifier, nowMs: clock.now() })
        const when = erasedAtMs === null ? '' : ` at ${new Date(erasedAtMs).toISOString()}`
        throw new AppError('erased', `This identifier belongs to a parcel that was erased${when}, so it cannot be watched.`)
      }
      return { identifier, created: watched.created }
    },
    /** Stops polling until a push comes or an app asks. Deletes nothing. Throws `not_found`. */
    async unwatch(text: string, by: Actor): Promise<{ readonly identifier: string; readonly stopped: 'unwatched' }> {
      const identifier = readIdentifier(text)
      const unwatched = await write.unwatch({ identifier, action: orderOf(by, 'parcel.unwatched', identifier) })
      if (unwatched === null) throw new AppError('not_found', 'No parcel has this identifier.')
      return { identifier, stopped: 'unwatched' }
    },
    /**
     * Polls now, in every configured language. An identifier without a parcel is polled in the first language, and gets a parcel if the
     * carrier knows it. Throws `erased` and `upstream_unavailable`.
     */
    async refresh(text: string, by: Actor): Promise<{ readonly identifier: string; readonly outcome: 'recorded' | 'unknown' }> {
      const identifier = readIdentifier(text)
      const askedAtMs = clock.now()
      const due = await write.claimPoll({ identifier, nowMs: askedAtMs, leaseMs: LEASE_MS })
      // Pushes contain only tracking ids, so a tracking number may have no parcel until a poll ties it to them (DOMAIN 1.2).
      const outcome =
        due === null ? await fetchUnknown(identifier, by.name) : await underWay.during(due.parcelId, () => refresh.refreshNow(due))
      await write.recordAction({ ...orderOf(by, 'parcel.refreshed', identifier), detail: { outcome } })
      if (outcome === 'unavailable' || outcome === 'unusable') {
        const detail =
          outcome === 'unusable'
            ? `The carrier gave no usable answer about this parcel${whyUnusable(askedAtMs)}. Whether it knows the parcel is not known.`
            : `The carrier cannot be asked now. ${whyNotAsked()}`.trimEnd()
        throw new AppError('upstream_unavailable', detail, { retryAfterMs: RETRY_AFTER_MS })
      }
      return { identifier, outcome }
    },
  }
}

/** `told`: called when the feed may have events more. */
type ImportWatchesPorts = Pick<Relay, 'clock'> & Writes<'watchMany'> & { readonly told: () => void }

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
const STORE_RETRY_MS = 5000

/**
 * Unless the request is `atomic`, valid lines are watched and invalid lines are reported by number.
 *
 * Throws `bad_request` (no column to read, or an invalid line in an atomic list), `erased` (only if atomic), `body_too_large` (too many lines)
 * and `storage_unavailable`. Each error has the fact `watched`: how many identifiers at the start of the list are watched now.
 */
export function createImportWatches(ports: ImportWatchesPorts): (request: WatchListRequest) => Promise<WatchListReport> {
  return async ({ format, column, atomic, lines, by }) => {
    const read = createWatchLineReader(format, column, 'orders')
    const errors: WatchListError[] = []
    const tally = { lines: 0, watched: 0, created: 0, failed: 0, erased: 0, errors }
    const identifiers: Named[] = []

    // Read the whole list before writing: writes in between would delay the sender, who might exceed the time limit of the request.
    for await (const text of lines) {
      tally.lines += 1
      if (tally.lines > WATCH_LINES_MAX) throw tooLong()
      const line = read(text)
      if (line.kind === 'refused') throw new AppError('bad_request', `${line.reason} No identifier is watched.`, { facts: { watched: 0 } })
      if (line.kind === 'identifier') identifiers.push({ identifier: line.identifier, line: tally.lines, order: line.order ?? null })
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
  readonly order: OrderPart | null
  readonly line: number
}

async function watchBatch(
  { write, told }: Pick<ImportWatchesPorts, 'write' | 'told'>,
  { named, ...part }: Audited & { readonly named: readonly Named[]; readonly isAtomic: boolean; readonly nowMs: number },
  tally: { watched: number; created: number; failed: number; erased: number; readonly errors: WatchListError[] },
): Promise<void> {
  const identifiers = named.map(({ identifier }) => identifier)
  const saysOrders = named.some(({ order }) => order !== null)
  const orders = saysOrders ? { orders: named.map(({ order }) => order) } : {}
  const results = await write.watchMany({ ...part, ...orders, identifiers }).catch((cause: unknown) => {
    const why = lacksRoom(cause) ? NO_ROOM_TEXT : 'The store takes no writes now.'
    const message = `${why} The first ${tally.watched} identifiers are watched. Send the whole list again: it does no harm.`
    throw new AppError('storage_unavailable', message, { cause, retryAfterMs: STORE_RETRY_MS, facts: { watched: tally.watched } })
  })
  if (saysOrders) told()
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
