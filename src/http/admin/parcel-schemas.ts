import { z } from 'zod'
import type { Door } from '../../domain/history/learning.ts'
import { STOPPED_REASONS } from '../../flow/admin/parcel-queries.ts'
import { identifier, instant, named, oneOfAll, wholeNumber } from '../server/answer-schemas.ts'

/** What a list and a single parcel have in common. */
const parcelMembers = (more: z.core.$ZodLooseShape = {}) => ({
  status: z.string().nullable().describe('The latest status; null: no entry is known.'),
  statusAt: instant().nullable(),
  entries: wholeNumber(),
  full: z.boolean().describe('It has as many entries as a parcel may have.'),
  cadence: z.strictObject({
    watchedAt: instant().nullable(),
    nextCheckAt: instant().nullable(),
    lastCheckAt: instant().nullable(),
    heardAt: instant().nullable().describe('When a push or poll last reported on it.'),
    failures: wholeNumber(),
    stopped: z.enum(STOPPED_REASONS).nullable().describe('Why it is not polled; null: it is.'),
    ...more,
  }),
})

export const listedParcelSchema = named('ListedParcel', () => z.strictObject({ identifiers: z.array(identifier()), ...parcelMembers() }))

const door = () => oneOfAll<Door>({ push: true, poll: true })

const languages = () => z.array(z.string())

const entrySchema = named('ParcelEntry', () =>
  z.strictObject({
    status: z.string(),
    detailedStatus: z.string(),
    eventTimestamp: z.string().describe('As the carrier wrote it.'),
    location: z.string().describe('Empty: not known.'),
    displayToConsumer: z.boolean(),
    languages: languages(),
    sequence: wholeNumber().describe('When the relay first learnt of it: its place in the feed.'),
    learntAt: instant().nullable().describe('Null: not known, as it was learnt by an earlier version.'),
    learntBy: door(),
    confirmedAt: instant().nullable().describe('When the other door agreed; null: it has not, or that is not known.'),
    confirmedBy: door().nullable(),
    provenance: z
      .array(
        z.strictObject({
          door: door(),
          languages: languages(),
          sequence: wholeNumber(),
          learntAt: instant().nullable(),
          askedAt: instant().nullable().describe('When the poll was made; null: it was a push.'),
        }),
      )
      .describe('Who reported it, the first one first.'),
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
        .describe('Why it is checked then, or not any more, as a sentence; null: it was never watched, or that cannot be told now.'),
    }),
    history: z.array(entrySchema()).describe('Newest first.'),
  }),
)
