import { deriveEntries, type Entry, lastSequenceOf } from '../../domain/history/history.ts'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import { isLanguageMissing } from '../../domain/history/pull-response.ts'
import type { RecordRules } from '../../domain/history/record-rules.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { LanguageAsked, PollFailure } from '../../domain/polling/poll.ts'
import type { WriteSide } from '../write-side.ts'
import type { Transactions, WriteTx } from '../write-store.ts'
import { type SchedulePorts, schedulePoll } from './schedule-poll.tx.ts'

type OutcomeTx = Pick<WriteTx, 'findIdentifiers' | 'findParcel' | 'loadParcel' | 'loadSightings' | 'pollableFrom' | 'saveParcel'> &
  Pick<WriteTx, 'markLanguageAsked' | 'markNotPollable' | 'releasePoll'>
type PollOutcomeVerbs = Pick<WriteSide, 'notePollFailure' | 'noteNotPollable' | 'noteLanguageAsked'>

/** Creates the verbs that save results of polls other than observations (DOMAIN 6). */
export function createNotePollOutcome(
  ports: SchedulePorts & { readonly store: Transactions<OutcomeTx> },
  options: RecordRules,
): PollOutcomeVerbs {
  const { store, clock } = ports
  return {
    notePollFailure: (failure) =>
      store.transaction(
        async (tx) => {
          tx.releasePoll(failure.parcelId)
          const parcel = await tx.findParcel(failure.parcelId)
          // If there is no such parcel, it was joined to another one or deleted during the poll.
          if (parcel === null) return
          const wasAsked = failure.kind !== 'not_asked'
          const next = wasAsked ? await schedulePoll(tx, afterFailure(parcel, failure), ports, options) : parcel
          const notBeforeMs = failure.atMs + (failure.retryAfterMs ?? 0)
          tx.saveParcel(next.nextPollAtMs === null ? next : { ...next, nextPollAtMs: Math.max(next.nextPollAtMs, notBeforeMs) })
        },
        { ofRole: 'any' },
      ),

    noteNotPollable: (identifier) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        // If the carrier has never reported on the parcel, keep polling the identifier, because the carrier may still get to know it.
        if (known === undefined || (await tx.loadParcel(known.parcelId)).entryCount === 0) return
        await tx.markNotPollable(identifier, clock.now())
      }),

    noteLanguageAsked: (asked) =>
      store.transaction(async (tx) => {
        // Lock the parcel. Otherwise an entry could be added meanwhile, and would count as asked for. Null: it was joined or deleted.
        if ((await tx.findParcel(asked.parcelId)) === null) return
        const entries = deriveEntries((await tx.loadSightings([asked.parcelId])).get(asked.parcelId) ?? [])
        const missed = entries.filter((entry) => wasMissedBy(asked, entry)).map(({ sequence }) => sequence)
        const upTo = missed.length === 0 ? lastSequenceOf(entries) : Math.min(...missed) - 1
        await tx.markLanguageAsked(asked.parcelId, asked.language, upTo)
      }),
  }
}

function afterFailure(parcel: ParcelState, { kind, atMs }: PollFailure): ParcelState {
  // Replace the check and the plan of earlier polls. If an earlier check has a later time, the clock was put back since.
  const checked = { ...parcel, checkedAtMs: atMs, nextPollAtMs: null }
  if (kind !== 'unknown') return { ...checked, failures: parcel.failures + 1 }
  // If an operator stopped watching the parcel during the poll, that stays the reason.
  return { ...checked, failures: 0, stopped: parcel.stopped === 'unwatched' ? 'unwatched' : 'unknown' }
}

/** Whether an entry was added during the request, lacks the language and is not in the answer. Then the language must be requested again. */
function wasMissedBy({ language, knownTo, answer }: LanguageAsked, entry: Entry): boolean {
  if (entry.sequence <= knownTo || !isLanguageMissing([entry], language)) return false
  const isOfAnswer = ({ sighting, askedAtMs }: KeptSighting) =>
    answer !== null && askedAtMs === answer.askedAtMs && sighting.source === 'poll' && sighting.texts[answer.language] !== undefined
  return !entry.members.some(isOfAnswer)
}
