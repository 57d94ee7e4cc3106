import { audienceOf } from '../../domain/history/audience.ts'
import { deriveEntries, type Entry } from '../../domain/history/history.ts'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import { isLanguageMissing } from '../../domain/history/pull-response.ts'
import type { RecordRules } from '../../domain/history/record-rules.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { LanguageAsked, MissedPush, PollFailure } from '../../domain/polling/poll.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'
import { createClaimDue } from './claim-due.tx.ts'
import { type SchedulePorts, schedulePoll } from './schedule-poll.tx.ts'

type PollResultVerbs = Pick<
  WriteSide,
  'claimDuePolls' | 'claimPoll' | 'notePollFailure' | 'noteNotPollable' | 'noteLanguageAsked' | 'settleMissedPushes'
>

/** How many entries without a push are settled in one transaction. */
const SETTLED_AT_ONCE = 256

/** The verbs that claim polls and save their results (DOMAIN 6). */
export function createPollResults(ports: SchedulePorts & { readonly store: WriteStore }, options: RecordRules): PollResultVerbs {
  const { store, clock } = ports
  return {
    claimDuePolls: createClaimDue(ports, options),

    notePollFailure: (failure) =>
      store.transaction(async (tx) => {
        tx.releasePoll(failure.parcelId)
        const parcel = await tx.findParcel(failure.parcelId)
        // It was joined to another during the poll.
        if (parcel === null) return
        const next = await schedulePoll(tx, afterFailure(parcel, failure), ports, options)
        const notBeforeMs = failure.atMs + (failure.retryAfterMs ?? 0)
        tx.saveParcel(next.nextPollAtMs === null ? next : { ...next, nextPollAtMs: Math.max(next.nextPollAtMs, notBeforeMs) })
      }),

    noteNotPollable: (identifier) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        // Before the carrier has reported anything about a parcel, not knowing it means not knowing it yet.
        if (known === undefined || (await tx.loadParcel(known.parcelId)).entryCount === 0) return
        await tx.markNotPollable(identifier, clock.now())
      }),

    noteLanguageAsked: (asked) =>
      store.transaction(async (tx) => {
        const entries = deriveEntries(await tx.loadSightings(asked.parcelId, null))
        const missed = entries.filter((entry) => wasMissedBy(asked, entry)).map(({ sequence }) => sequence)
        const upTo = missed.length === 0 ? await tx.nextSequence() : Math.min(...missed) - 1
        await tx.markLanguageAsked(asked.parcelId, asked.language, upTo)
      }),

    claimPoll: ({ identifier, nowMs, leaseMs }) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        if (known === undefined) return null
        const { parcelId } = known
        tx.leasePolls([parcelId], nowMs + leaseMs)
        return { parcelId, identifiers: await tx.pollableIdentifiers(parcelId, nowMs) }
      }),

    settleMissedPushes: (nowMs) =>
      store.transaction(async (tx) => {
        const missed: MissedPush[] = []
        for (const { parcelId, entry, eventAtMs, foundAtMs } of await tx.duePushes(nowMs, SETTLED_AT_ONCE)) {
          await tx.settlePush(entry)
          if (!(await wasMissed(tx, parcelId, entry))) continue
          const [identifier = null] = await tx.pollableIdentifiers(parcelId, nowMs)
          missed.push({ parcelId, identifier, eventAtMs, foundAtMs })
        }
        return missed
      }),
  }
}

function afterFailure(parcel: ParcelState, { kind, atMs }: PollFailure): ParcelState {
  const checked = { ...parcel, checkedAtMs: Math.max(parcel.checkedAtMs ?? 0, atMs) }
  if (kind === 'unavailable') return { ...checked, failures: parcel.failures + 1 }
  // It was unwatched during the poll, which the answer does not undo.
  return { ...checked, failures: 0, stopped: parcel.stopped === 'unwatched' ? 'unwatched' : 'unknown' }
}

/**
 * Whether an entry was added during the request, lacks the language and is not in the answer, so that the language has to be requested
 * again.
 */
function wasMissedBy({ language, knownTo, answer }: LanguageAsked, entry: Entry): boolean {
  if (entry.sequence <= knownTo || !isLanguageMissing([entry], language)) return false
  const isOfAnswer = ({ sighting, askedAtMs }: KeptSighting) =>
    answer !== null && askedAtMs === answer.askedAtMs && sighting.source === 'poll' && sighting.texts[answer.language] !== undefined
  return !entry.members.some(isOfAnswer)
}

/** Whether a push should have reported an entry: only polls did, and it was not backfill (DOMAIN 6.6). */
async function wasMissed(tx: WriteTx, parcelId: number, sequence: number): Promise<boolean> {
  const entries = deriveEntries(await tx.loadSightings(parcelId, null))
  const entry = entries.find((one) => one.members.some((kept) => kept.sequence === sequence))
  if (entry === undefined || audienceOf(entry.members).kind === 'backfill') return false
  return entry.members.every((kept) => kept.sighting.source === 'poll')
}
