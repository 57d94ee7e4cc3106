import { answersOf, type BatchState, findIdentifier, orderOf, type ParcelDraft } from './batch-state.ts'
import type { PollObservation, PushObservation } from './observation.ts'
import { type Overwritten, overwrittenHead, overwrittenOrder, overwrittenSightings, tieable } from './overwritten.ts'
import { type IdentifierState, isUnheardOf, type ParcelState } from './parcel-state.ts'
import type { KeptSighting } from './sightings.ts'

/** An observation of a parcel, and the parcel before and after it. */
interface Overwriting {
  readonly observation: PushObservation | PollObservation
  /** The state before the observation. */
  readonly former: ParcelState
  readonly before: ParcelDraft
  readonly after: ParcelDraft
  /** The sightings that were known and loaded: for a push those of its second, for a poll all. */
  readonly known: readonly KeptSighting[]
  readonly changed: readonly KeptSighting[]
  readonly newNames: readonly IdentifierState[]
  readonly isJoined: boolean
}

/** Returns what an observation overwrites of its parcel. Nearly all pushes and most polls overwrite nothing. */
export function overwrittenBy(batch: BatchState, seen: Overwriting): Overwritten {
  const { former, isJoined, after } = seen
  if (isJoined) return { lost: 'join', ...(answersOf(batch, after).length === 0 ? {} : { isPolled: true }) }
  const isFirst = former.entryCount === 0 && former.lastSeenAtMs === null
  // Before the first report the relay had nothing to answer.
  if (isFirst) {
    const unheard = isUnheardOf(former) && former.checkedAtMs !== null ? { unheardAtMs: former.checkedAtMs } : {}
    return { ...unheard, ...overwrittenByPoll(batch, seen) }
  }
  return { ...overwrittenNames(batch, seen.newNames), ...overwrittenByPoll(batch, seen) }
}

function overwrittenNames(batch: BatchState, newNames: readonly IdentifierState[]): Overwritten {
  if (newNames.length === 0) return {}
  const isKnown = ({ value }: IdentifierState) => findIdentifier(batch, value) !== undefined
  const [added, listed] = [newNames.filter((name) => !isKnown(name)), newNames.filter(isKnown)]
  const valuesOf = (names: readonly IdentifierState[]) => names.map(({ value }) => value)
  return { ...(added.length === 0 ? {} : { added: valuesOf(added) }), ...(listed.length === 0 ? {} : { listed: valuesOf(listed) }) }
}

function overwrittenByPoll(batch: BatchState, { observation, before, after, known, changed }: Overwriting): Overwritten {
  if (observation.kind === 'push') return {}
  const sightings = overwrittenSightings(known, changed)
  const isFirstSeen = observation.sightings.length > 0 && !known.some(({ sighting }) => sighting.source === 'poll')
  const head = overwrittenHead(answersOf(batch, before), answersOf(batch, after), isFirstSeen)
  const tied = before.orderFrom === after.orderFrom ? [] : tieable(known)
  const order = tied.length === 0 ? null : overwrittenOrder(tied, orderOf(batch, before), orderOf(batch, after))
  return { ...(sightings.length === 0 ? {} : { sightings }), ...(head === undefined ? {} : { head }), ...(order === null ? {} : { order }) }
}
