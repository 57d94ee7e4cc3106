import type { InspectedIdentifier } from '../../core/domain/admin/parcel-list.ts'
import { type Entry, learningOf } from '../../core/domain/history/history.ts'
import type { AwaitedParcel, ExplainedParcel } from '../../core/flow/admin/parcels/parcel-queries.ts'
import { presentInstant } from '../../core/http/server/present.ts'
import type { ListedParcelAnswer, ParcelAnswer } from './parcel-schemas.ts'

export function presentListed({ identifiers, ...awaited }: AwaitedParcel): ListedParcelAnswer {
  const trackingNumbers = identifiers.filter(({ isTrackingId }) => !isTrackingId)
  return { identifiers: valuesOf(identifiers), trackingNumbers: valuesOf(trackingNumbers), ...presentState(awaited) }
}

function valuesOf(identifiers: readonly InspectedIdentifier[]): readonly string[] {
  return identifiers.map(({ value }) => value)
}

function presentState({ state, waitsForCarrier }: Pick<AwaitedParcel, 'state' | 'waitsForCarrier'>) {
  return {
    status: state.latest?.status ?? null,
    statusAt: presentInstant(state.latest?.atMs ?? null),
    entries: state.entryCount,
    full: state.full,
    cadence: {
      watchedAt: presentInstant(state.watchedAtMs),
      nextCheckAt: presentInstant(state.nextPollAtMs),
      waitsForCarrier,
      lastCheckAt: presentInstant(state.checkedAtMs),
      heardAt: presentInstant(state.lastSeenAtMs),
      failures: state.failures,
      stopped: state.nextPollAtMs === null ? state.stopped : null,
    },
  }
}

/** Presents a parcel with its history and where each entry came from. */
export function presentInspected({ identifiers, entries, nextPollBecause, ...awaited }: ExplainedParcel): ParcelAnswer {
  const shown = presentState(awaited)
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
