import type { InspectedIdentifier, ListedParcel } from '../../domain/admin/parcel-list.ts'
import type { Entry } from '../../domain/history/history.ts'
import { learningOf } from '../../domain/history/learning.ts'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import type { ExplainedParcel } from '../../flow/admin/parcels/parcel-queries.ts'
import { presentInstant } from '../server/present.ts'
import type { ListedParcelAnswer, ParcelAnswer } from './parcel-schemas.ts'

export function presentListed({ state, identifiers }: ListedParcel): ListedParcelAnswer {
  const trackingNumbers = identifiers.filter(({ isTrackingId }) => !isTrackingId)
  return { identifiers: valuesOf(identifiers), trackingNumbers: valuesOf(trackingNumbers), ...presentState(state) }
}

function valuesOf(identifiers: readonly InspectedIdentifier[]): readonly string[] {
  return identifiers.map(({ value }) => value)
}

function presentState(state: ParcelState) {
  return {
    status: state.latest?.status ?? null,
    statusAt: presentInstant(state.latest?.atMs ?? null),
    entries: state.entryCount,
    full: state.full,
    cadence: {
      watchedAt: presentInstant(state.watchedAtMs),
      nextCheckAt: presentInstant(state.nextPollAtMs),
      lastCheckAt: presentInstant(state.checkedAtMs),
      heardAt: presentInstant(state.lastSeenAtMs),
      failures: state.failures,
      stopped: state.nextPollAtMs === null ? state.stopped : null,
    },
  }
}

/** Presents a parcel with its history and where each entry came from. */
export function presentInspected({ state, identifiers, entries, nextPollBecause }: ExplainedParcel): ParcelAnswer {
  const shown = presentState(state)
  const cadence = { ...shown.cadence, nextCheckBecause: nextPollBecause }
  return { identifiers: identifiers.map(presentIdentifier), ...shown, cadence, history: entries.map(presentEntry) }
}

function presentIdentifier({ value, isTrackingId, refusedAtMs }: InspectedIdentifier): ParcelAnswer['identifiers'][number] {
  const kind = isTrackingId ? 'tracking id' : 'tracking number'
  return { value, kind, carrierKnowsIt: refusedAtMs === null, carrierRefusedItAt: presentInstant(refusedAtMs) }
}

function presentEntry(entry: Entry): ParcelAnswer['history'][number] {
  const { status, detailedStatus, eventTimestamp, location, displayToConsumer, sequence, texts } = entry
  const { first, confirmed } = learningOf(entry)
  return {
    status,
    detailedStatus,
    eventTimestamp,
    location,
    displayToConsumer,
    languages: Object.keys(texts).sort(),
    /** The sequence of the event that first reported the entry. */
    sequence,
    learntAt: presentInstant(first.atMs),
    learntBy: first.source,
    confirmedAt: presentInstant(confirmed?.atMs ?? null),
    confirmedBy: confirmed?.source ?? null,
    provenance: entry.members
      .map(({ sighting, sequence: learnt, learntAtMs, askedAtMs }) => ({
        door: sighting.source,
        languages: Object.keys(sighting.texts).sort(),
        sequence: learnt,
        learntAt: presentInstant(learntAtMs),
        askedAt: sighting.source === 'poll' ? presentInstant(askedAtMs) : null,
      }))
      .toSorted((a, b) => a.sequence - b.sequence),
  }
}
