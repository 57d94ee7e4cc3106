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
/** So many due checks are weighed against one another at least, and so many times what a pass takes. */
const WEIGHED_MIN = 256
const WEIGHED_TIMES = 8
/** When even more is due than is weighed, the least worth part of it goes to the end of the queue, so that all of it comes to be weighed. */
const PUT_BACK_PART = 0.25
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
  const { nowMs, limit } = request
  const claimed = await tx.claimDuePolls(request)
  const overdueMs = nowMs - (claimed[0]?.dueAtMs ?? nowMs)
  const isScarce = claimed.length === limit && overdueMs > SCARCE_AFTER_MS
  if (!isScarce || options.firstCome === true) return claimed.map(({ parcelId, identifiers }) => ({ parcelId, identifiers }))

  const weighedMax = Math.max(WEIGHED_MIN, limit * WEIGHED_TIMES)
  const others = await tx.claimDuePolls({ ...request, limit: weighedMax - limit })
  const weighed: Weighed[] = []
  for (const { dueAtMs = nowMs, ...due } of [...claimed, ...others]) {
    const parcel = await tx.loadParcel(due.parcelId)
    const worth = worthOf({ ...parcel, unpollable: false }, ports.outlook(), options.cadence, nowMs)
    weighed.push({ due, parcel, worth, dueAtMs })
  }
  // Equal worth: in the order of falling due, which the sort keeps.
  weighed.sort((a, b) => b.worth - a.worth)
  const putBackFrom = weighed.length < weighedMax ? weighedMax : weighedMax * (1 - PUT_BACK_PART)
  for (const [at, { parcel, dueAtMs }] of weighed.entries()) {
    if (at >= limit) await tx.saveParcel({ ...parcel, nextPollAtMs: at >= putBackFrom ? nowMs : dueAtMs })
  }
  return weighed.slice(0, limit).map(({ due }) => due)
}

interface Weighed {
  readonly due: DuePoll
  readonly parcel: ParcelState
  readonly worth: number
  readonly dueAtMs: number
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
