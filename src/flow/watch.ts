import { worthOf } from '../domain/cadence.ts'
import { deriveEntries } from '../domain/history.ts'
import type { DuePoll, MissedPush, ParcelState, PollFailure, WriteSide, WriteStore, WriteTx } from './ports.ts'
import { isBackfill } from './queue-deliveries.ts'
import { type RecordOptions, type RecordPorts, schedule } from './record.ts'

type WatchVerbs = Pick<
  WriteSide,
  'claimDuePolls' | 'claimPoll' | 'notePollFailure' | 'noteNotPollable' | 'noteLanguageAsked' | 'settleMissedPushes'
>

/** When the longest waiting check waits longer than this, calls are scarce: then worth decides, not the time of falling due. */
const SCARCE_AFTER_MS = 10 * 60_000
/** So many due checks are weighed against one another: all of them, but for the worst of backlogs. */
const WEIGHED_MAX = 2048
/** When even more is due, the least worth part of what was weighed goes to the end of the queue, so that all of it comes to be weighed. */
const PUT_BACK_PART = 1 / 16
/** How many overdue verdicts are reached in one transaction. */
const SETTLED_AT_ONCE = 256

/** The verbs that keep track of whom to ask, and of what asking found (DOMAIN 6). */
export function createWatch(ports: RecordPorts & { readonly store: WriteStore }, options: RecordOptions): WatchVerbs {
  const { store, clock } = ports
  return {
    claimDuePolls: ({ nowMs, limit, leaseMs }) =>
      store.transaction((tx) => claimWorthiest(tx, { nowMs, limit, leaseUntilMs: nowMs + leaseMs }, ports, options)),

    notePollFailure: (failure) =>
      store.transaction(async (tx) => {
        const parcel = await tx.findParcel(failure.parcelId)
        // It was joined to another while it was asked about.
        if (parcel === null) return
        const next = await schedule(tx, afterFailure(parcel, failure), ports, options)
        const notBeforeMs = failure.atMs + (failure.retryAfterMs ?? 0)
        await tx.saveParcel(next.nextPollAtMs === null ? next : { ...next, nextPollAtMs: Math.max(next.nextPollAtMs, notBeforeMs) })
      }),

    noteNotPollable: (identifier) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        // Until the carrier has told anything of a parcel, not knowing it means not knowing it yet.
        if (known === undefined || (await tx.loadParcel(known.parcelId)).entryCount === 0) return
        await tx.markNotPollable(identifier, clock.now())
      }),

    noteLanguageAsked: ({ parcelId, language }) => store.transaction((tx) => tx.markLanguageAsked(parcelId, language, tx.nextSequence())),

    claimPoll: ({ identifier, nowMs, leaseMs }) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        return known === undefined ? null : await tx.claimPoll({ parcelId: known.parcelId, nowMs, leaseUntilMs: nowMs + leaseMs })
      }),

    settleMissedPushes: (nowMs) =>
      store.transaction(async (tx) => {
        const missed: MissedPush[] = []
        for (const { parcelId, entry, eventAtMs, foundAtMs } of await tx.duePushes(nowMs, SETTLED_AT_ONCE)) {
          await tx.settlePush(entry)
          if (await wasMissed(tx, await tx.loadParcel(parcelId), entry)) missed.push({ parcelId, eventAtMs, foundAtMs })
        }
        return missed
      }),
  }
}

/**
 * Claims what is due, in the order of falling due while there are calls enough. When there are not, it claims what is worth most of all that
 * it weighs; the rest waits on.
 */
async function claimWorthiest(
  tx: WriteTx,
  request: { readonly nowMs: number; readonly limit: number; readonly leaseUntilMs: number },
  ports: RecordPorts,
  options: RecordOptions,
): Promise<readonly DuePoll[]> {
  const { nowMs, limit, leaseUntilMs } = request
  const [longest] = await tx.findDuePolls({ nowMs, limit: 1 })
  const isScarce = longest !== undefined && nowMs - (longest.nextPollAtMs ?? nowMs) > SCARCE_AFTER_MS
  if (!isScarce || options.firstCome === true) return await tx.claimDuePolls(request)

  const due = await tx.findDuePolls({ nowMs, limit: WEIGHED_MAX })
  const outlook = ports.outlook()
  const weighed = due.map((parcel) => ({ parcel, worth: worthOf({ ...parcel, unpollable: false }, outlook, options.cadence, nowMs) }))
  // Equal worth: in the order of falling due, which the sort keeps.
  const byWorth = weighed.sort((a, b) => b.worth - a.worth).map(({ parcel }) => parcel)
  if (due.length === WEIGHED_MAX) {
    for (const parcel of byWorth.slice(-WEIGHED_MAX * PUT_BACK_PART)) await tx.saveParcel({ ...parcel, nextPollAtMs: nowMs })
  }
  const claimed: DuePoll[] = []
  for (const { parcelId } of byWorth.slice(0, limit)) claimed.push(await tx.claimPoll({ parcelId, nowMs, leaseUntilMs }))
  return claimed
}

function afterFailure(parcel: ParcelState, { kind, atMs }: PollFailure): ParcelState {
  const checked = { ...parcel, checkedAtMs: Math.max(parcel.checkedAtMs ?? 0, atMs) }
  if (kind === 'unavailable') return { ...checked, failures: parcel.failures + 1 }
  // Unwatched while it was asked about: an answer does not take that back.
  return { ...checked, failures: 0, stopped: parcel.stopped === 'unwatched' ? 'unwatched' : 'unknown' }
}

/**
 * An entry only polls brought, that happened since the relay knows the parcel: a push should have brought it. What is older is backfill
 * (DOMAIN 6.6).
 */
async function wasMissed(tx: WriteTx, parcel: ParcelState, sequence: number): Promise<boolean> {
  const entries = deriveEntries(await tx.loadSightings(parcel.parcelId, null))
  const entry = entries.find((one) => one.members.some((kept) => kept.sequence === sequence))
  return entry !== undefined && !isBackfill(entry, parcel) && entry.members.every((kept) => kept.sighting.source === 'poll')
}
