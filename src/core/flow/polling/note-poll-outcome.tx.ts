import { deriveEntries, type Entry, lastSequenceOf } from '../../domain/history/history.ts'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import { isLanguageMissing } from '../../domain/history/pull-response.ts'
import type { RecordRules } from '../../domain/history/recording.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { LanguageAsked, PollFailure } from '../../domain/polling/poll.ts'
import { markRefused } from '../../store/history/parcels.ts'
import type { Transactions } from '../../store/write-store.ts'
import type { WriteSide } from '../write-side.ts'
import { type SchedulePorts, schedulePoll } from './schedule-poll.tx.ts'

type PollOutcomeVerbs = Pick<WriteSide, 'notePollFailure' | 'noteNotPollable' | 'noteLanguageAsked'>

/** Saves what polls have shown besides observations (DOMAIN 6). */
export function createNotePollOutcome(ports: SchedulePorts & { readonly store: Transactions }, options: RecordRules): PollOutcomeVerbs {
  const { store, clock } = ports
  return {
    notePollFailure: (failure) =>
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

    noteNotPollable: (identifier) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        // If the parcel has no entries, keep polling the identifier, because the carrier may not know a new parcel yet.
        if (known === undefined || (await tx.loadParcel(known.parcelId)).entryCount === 0) return
        await markRefused(tx, identifier, clock.now())
      }),

    noteLanguageAsked: (asked) =>
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
