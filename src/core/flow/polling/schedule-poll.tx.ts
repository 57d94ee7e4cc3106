import { audienceOf } from '../../domain/history/audience.ts'
import { deriveEntries, type Entry, lastSequenceOf } from '../../domain/history/history.ts'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import { isLanguageMissing } from '../../domain/history/pull-response.ts'
import type { RecordRules } from '../../domain/history/recording.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { CadenceModel, CadencePolicy } from '../../domain/polling/cadence.ts'
import {
  type DueCursor,
  type ExpectedPush,
  type LanguageAsked,
  type MissedPush,
  type PollFailure,
  scheduleNextPoll,
} from '../../domain/polling/poll.ts'
import { addReportNote } from '../../store/admin/report-note-rows.ts'
import type { Session } from '../../store/engine.ts'
import { markRefused, pollableFrom, pollableIdentifiers } from '../../store/history/parcels.ts'
import { dropExpectedPushes, duePushes } from '../../store/polling/due-polls.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import type { Clock } from '../ports.ts'

export interface SchedulePorts {
  readonly clock: Pick<Clock, 'now'>
  /** Returns the current model, by which next polls are scheduled. */
  readonly model: () => CadenceModel
}

/** Schedules the next poll of a parcel. */
async function schedulePoll(
  tx: Session,
  parcel: ParcelState,
  ports: SchedulePorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<ParcelState> {
  const [scheduled = parcel] = await schedulePolls(tx, [parcel], ports, { cadence })
  return scheduled
}

/** Schedules the next polls of several parcels, with as many round trips to the database as for one parcel. */
export async function schedulePolls(
  tx: Session,
  parcels: readonly ParcelState[],
  ports: SchedulePorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<readonly ParcelState[]> {
  // Identifiers matter only for parcels that the carrier does not know.
  const unknown = parcels.filter(({ stopped }) => stopped === 'unknown').map(({ parcelId }) => parcelId)
  const nowMs = ports.clock.now()
  const fromMs = await pollableFrom(tx, unknown)
  const model = ports.model()
  return parcels.map((parcel) => scheduleNextPoll(parcel, fromMs.get(parcel.parcelId) ?? null, model, cadence, nowMs))
}

/** Saves what polls have shown besides observations (DOMAIN 6). */
export function createNotePollOutcome(ports: SchedulePorts & { readonly store: Transactions }, options: RecordRules) {
  const { store, clock } = ports
  return {
    /** Saves that a poll failed, and schedules the next poll. */
    notePollFailure: (failure: PollFailure) =>
      store.transaction(
        async (tx) => {
          tx.releasePoll(failure.parcelId)
          const parcel = await tx.findParcel(failure.parcelId)
          // The parcel was joined to another parcel or deleted during the poll.
          if (parcel === null) return
          const wasAsked = failure.kind !== 'not_asked'
          if (!wasAsked && failure.retryAfterMs === undefined) return
          const next = wasAsked ? await schedulePoll(tx, afterFailure(parcel, failure), ports, options) : parcel
          const notBeforeMs = failure.atMs + (failure.retryAfterMs ?? 0)
          tx.saveParcel(next.nextPollAtMs === null ? next : { ...next, nextPollAtMs: Math.max(next.nextPollAtMs, notBeforeMs) })
        },
        { ofRole: 'any' },
      ),

    /** Remembers that the carrier answered 404 or 410 for an identifier of a known parcel (DOMAIN 6.3). */
    noteNotPollable: (identifier: string) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        // If the parcel has no entries, keep polling the identifier, because the carrier may not know a new parcel yet.
        if (known === undefined || (await tx.loadParcel(known.parcelId)).entryCount === 0) return
        await markRefused(tx, identifier, clock.now())
      }),

    /** Notes that a language was fetched for a parcel. The language is fetched again only if a newer entry lacks it (DOMAIN 4.2). */
    noteLanguageAsked: (asked: LanguageAsked) =>
      store.transaction(async (tx) => {
        // This also locks the parcel. Otherwise an entry that is added meanwhile would count as asked for in this language.
        if ((await tx.findParcel(asked.parcelId)) === null) return
        const entries = deriveEntries((await tx.loadSightings([asked.parcelId])).get(asked.parcelId) ?? [])
        const missed = entries.filter((entry) => wasMissedBy(asked, entry)).map(({ sequence }) => sequence)
        const upTo = missed.length === 0 ? lastSequenceOf(entries) : Math.min(...missed) - 1
        await tx.markLanguageAsked(asked.parcelId, asked.language, upTo)
      }),
  }
}

function afterFailure(parcel: ParcelState, { kind, atMs }: PollFailure): ParcelState {
  // Set even a time before the last check, because the clock may have been put back since then.
  const checked = { ...parcel, checkedAtMs: atMs, nextPollAtMs: null }
  if (kind !== 'unknown') return { ...checked, failures: parcel.failures + 1 }
  // If an operator stopped watching the parcel during the poll, `unwatched` stays the reason.
  return { ...checked, failures: 0, stopped: parcel.stopped === 'unwatched' ? 'unwatched' : 'unknown' }
}

/** Whether an entry was added during the request, lacks the language and is not in the answer. Then the language is asked for again. */
function wasMissedBy({ language, knownTo, answer }: LanguageAsked, entry: Entry): boolean {
  if (entry.sequence <= knownTo || !isLanguageMissing([entry], language)) return false
  const isOfAnswer = ({ sighting, askedAtMs }: KeptSighting) =>
    answer !== null && askedAtMs === answer.askedAtMs && sighting.source === 'poll' && sighting.texts[answer.language] !== undefined
  return !entry.members.some(isOfAnswer)
}

/**
 * The limits of polls per transaction, and of transactions per pass of the poller, so that pushes wait only for some milliseconds.
 * Rescheduling a million parcels takes minutes.
 */
const PLANNED_AT_ONCE = 256
const TURNS_MAX = 8
const EVER_MS = Number.MAX_SAFE_INTEGER

/**
 * Reschedules polls when pushes become unreliable, because polls that were scheduled while pushes were reliable would come too late. Visits
 * all future polls, the earliest first, and moves those that should come earlier (DOMAIN 6.1). Each call continues where the last one
 * stopped. After a restart it begins again.
 */
export function createReschedulePolls(
  ports: SchedulePorts & { readonly store: Transactions },
  options: Pick<RecordRules, 'cadence'>,
): (nowMs: number) => Promise<void> {
  let wasRelied = ports.model().pushHealth !== 'unknown'
  /** Where to continue; null: there is nothing to visit. */
  let cursor: DueCursor | null = null

  async function rescheduleFrom(tx: WriteTx, after: DueCursor): Promise<DueCursor | null> {
    const due = await tx.duePolls({ nowMs: EVER_MS, limit: PLANNED_AT_ONCE, after })
    const plannedAtMs = new Map(due.map(({ parcelId, dueAtMs }) => [parcelId, dueAtMs]))
    // `findParcels` leaves out parcels that were joined to others or deleted meanwhile.
    const next = await schedulePolls(tx, await tx.findParcels([...plannedAtMs.keys()]), ports, options)
    tx.saveParcels(next.filter(({ parcelId, nextPollAtMs }) => (nextPollAtMs ?? EVER_MS) < (plannedAtMs.get(parcelId) ?? 0)))
    return due.length < PLANNED_AT_ONCE ? null : (due.at(-1) ?? null)
  }

  return async (nowMs) => {
    const isRelied = ports.model().pushHealth === 'healthy'
    if (isRelied) cursor = null
    else if (wasRelied) cursor = { dueAtMs: nowMs, parcelId: EVER_MS }
    wasRelied = isRelied
    for (let turn = 0; turn < TURNS_MAX && cursor !== null; turn++) {
      const after: DueCursor = cursor
      cursor = await ports.store.transaction((tx) => rescheduleFrom(tx, after), { ofRole: 'poller' })
    }
  }
}

/** One transaction settles this many entries. */
const SETTLED_AT_ONCE = 256

/**
 * Decides whether the pushes of entries that a poll found were missed (DOMAIN 6.6). Each push had a grace period to arrive, which is now over.
 * Each query handles many entries, so that parcels stay locked only for a few round trips.
 */
export function createSettleMissedPushes(store: Transactions) {
  return (nowMs: number) =>
    store.transaction(
      async (tx): Promise<readonly MissedPush[]> => {
        const due = await lockDue(tx, nowMs)
        if (due.length === 0) return []
        dropExpectedPushes(
          tx,
          due.map(({ entry }) => entry),
        )
        const sightings = await tx.loadSightings([...new Set(due.map(({ parcelId }) => parcelId))])
        const entries = new Map([...sightings].map(([parcelId, kept]) => [parcelId, deriveEntries(kept)]))
        const missed = due.filter(({ parcelId, entry }) => wasMissed(entries.get(parcelId) ?? [], entry))
        const lost = missed.map(({ parcelId, entry, eventAtMs }) => ({ kind: 'lost', atMs: eventAtMs, parcelId, entry }) as const)
        addReportNote(tx, lost, nowMs)
        return await Promise.all(missed.map((one) => namedAsMissed(tx, one, nowMs)))
      },
      { ofRole: 'poller' },
    )
}

/**
 * Locks the parcels of the due entries until the transaction ends, and returns the entries. Reads the entries again after the locking,
 * because a parcel may have been joined to another just before. An entry whose parcel is then not locked waits for the next call.
 */
async function lockDue(tx: WriteTx, nowMs: number): Promise<readonly ExpectedPush[]> {
  const seen = await duePushes(tx, nowMs, SETTLED_AT_ONCE)
  if (seen.length === 0) return []
  const locked = await tx.findParcels([...new Set(seen.map(({ parcelId }) => parcelId))])
  const lockedIds = new Set(locked.map(({ parcelId }) => parcelId))
  return (await duePushes(tx, nowMs, SETTLED_AT_ONCE)).filter(({ parcelId }) => lockedIds.has(parcelId))
}

/**
 * Whether a push should have reported an entry: only polls have reported it, and it is not backfill (DOMAIN 6.6). Equal pushes are recorded once
 * (DOMAIN 2.4), so a push of an equal entry may have been of this one.
 */
function wasMissed(entries: readonly Entry[], sequence: number): boolean {
  const entry = entries.find((one) => one.members.some((kept) => kept.sequence === sequence))
  if (entry === undefined || audienceOf(entry.members).kind === 'backfill') return false
  return !entries.some((one) => isEqualTo(entry, one) && one.members.some((kept) => kept.sighting.source === 'push'))
}

function isEqualTo(entry: Entry, other: Entry): boolean {
  return (['status', 'detailedStatus', 'atMs', 'location'] as const).every((name) => entry[name] === other[name])
}

async function namedAsMissed(tx: Session, { parcelId, eventAtMs, foundAtMs }: ExpectedPush, nowMs: number): Promise<MissedPush> {
  const [identifier = null] = await pollableIdentifiers(tx, parcelId, nowMs)
  return { parcelId, identifier, eventAtMs, foundAtMs }
}
