import { z } from 'zod'
import type { InspectedIdentifier } from '../../core/domain/admin/parcel-list.ts'
import { type Entry, learningOf } from '../../core/domain/history/history.ts'
import { type AwaitedParcel, type ExplainedParcel, STOPPED_REASONS } from '../../core/flow/admin/parcels/parcel-queries.ts'
import { type AnswerOf, identifier, instant, named, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { presentInstant } from '../../core/http/server/present.ts'

/** The members of a parcel, both in a list and when it is shown alone. */
const parcelMembers = <More extends z.core.$ZodLooseShape>(more: More) => ({
  status: z.string().nullable().describe('The latest status; null: no entry is known.'),
  statusAt: instant().nullable(),
  entries: wholeNumber(),
  full: z.boolean().describe('Whether the parcel has as many entries as a parcel may have.'),
  cadence: z.strictObject({
    watchedAt: instant().nullable(),
    nextCheckAt: instant().nullable().describe('When the carrier is asked next; with `waitsForCarrier`, the earliest time.'),
    waitsForCarrier: z.boolean().describe('Whether calls to the carrier pause, so that the parcel is checked when it answers again.'),
    lastCheckAt: instant().nullable(),
    heardAt: instant().nullable().describe('When a push or poll last reported on the parcel.'),
    failures: wholeNumber().describe('How many polls in a row have failed; 0: the carrier has answered the last one.'),
    stopped: z.enum(STOPPED_REASONS).nullable().describe('Why the parcel is not polled; null: it is polled.'),
    ...more,
  }),
})

export const listedParcelSchema = named('ListedParcel', () =>
  z.strictObject({
    identifiers: z.array(identifier()),
    trackingNumbers: z
      .array(identifier())
      .describe('The identifiers that are tracking numbers; empty: none is known yet, because pushes name tracking ids only.'),
    ...parcelMembers({}),
  }),
)

const source = () => z.enum(['push', 'poll'])

const languages = () => z.array(z.string())

const entrySchema = named('ParcelEntry', () =>
  z.strictObject({
    status: z.string(),
    detailedStatus: z.string(),
    eventTimestamp: z.string().describe('As the carrier wrote it.'),
    location: z.string().describe('Empty: not known.'),
    displayToConsumer: z.boolean(),
    languages: languages(),
    sequence: wholeNumber().describe('The sequence in the feed of the event that first reported the entry.'),
    learntAt: instant().nullable().describe('Null: it is not known.'),
    learntBy: source(),
    confirmedAt: instant()
      .nullable()
      .describe('When the other source, push or poll, reported the same; null: it has not, or the time is not known.'),
    confirmedBy: source().nullable(),
    provenance: z
      .array(
        z.strictObject({
          door: source(),
          languages: languages(),
          sequence: wholeNumber(),
          learntAt: instant().nullable(),
          askedAt: instant().nullable().describe('When the poll was made; null: a push reported the entry.'),
        }),
      )
      .describe('The pushes and polls that reported the entry, the first one first.'),
  }),
)

export const parcelSchema = named('Parcel', () =>
  z.strictObject({
    identifiers: z.array(
      z.strictObject({
        value: identifier(),
        kind: z.enum(['tracking id', 'tracking number']),
        carrierKnowsIt: z.boolean(),
        carrierRefusedItAt: instant().nullable(),
      }),
    ),
    ...parcelMembers({
      nextCheckBecause: z
        .string()
        .nullable()
        .describe(
          'A sentence that says why the parcel is polled then, or is not polled; null: nobody ever watched it, or the reason is not known now.',
        ),
    }),
    history: z.array(entrySchema()).describe('Newest first.'),
  }),
)

export type ListedParcelAnswer = AnswerOf<typeof listedParcelSchema>
export type ParcelAnswer = AnswerOf<typeof parcelSchema>

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
