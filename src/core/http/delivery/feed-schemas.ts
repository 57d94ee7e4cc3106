import { z } from 'zod'
import { identifier, named, numberedId, wholeNumber } from '../server/answer-schemas.ts'

const members = () => z.record(z.string(), z.unknown()).describe('Members that the carrier sent and the relay does not know.')

const feedParcel = named('FeedParcel', () =>
  z.strictObject({
    id: numberedId().describe("The relay's own id of the parcel, the same until a `join` replaces it."),
    identifiers: z.array(identifier()),
    trackingIds: z.array(z.string()),
    distributionType: z.string(),
    extra: members(),
    history: z.array(wholeNumber()).describe('The whole history by entry id, newest first.'),
  }),
)

const feedEntry = named('FeedEntry', () =>
  z.strictObject({
    id: wholeNumber(),
    status: z.string(),
    detailedStatus: z.string(),
    eventTimestamp: z.string(),
    location: z.string(),
    displayToConsumer: z.boolean(),
    texts: z
      .record(z.string(), z.strictObject({ consumer: z.string().nullable().optional(), detailed: z.string().nullable().optional() }))
      .describe('By language. A missing member was never reported.'),
    extra: members(),
  }),
)

const eventMembers = () => ({
  sequence: z.int().min(1),
  parcel: feedParcel(),
  entry: feedEntry().nullable().describe('Null: the event is about the parcel as a whole.'),
})

/** An event of the feed, by its kind. */
export const feedEventSchema = named('FeedEvent', () =>
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.enum(['entry', 'update', 'split']), ...eventMembers() }),
    z.strictObject({
      kind: z.literal('united'),
      ...eventMembers(),
      united: z.array(wholeNumber()).optional().describe('The ids that are now part of `entry`.'),
    }),
    z.strictObject({
      kind: z.literal('retired').describe('The parcel was past `retention.history` and is gone. No other parcel gets its id.'),
      sequence: z.int().min(1),
      parcel: z.strictObject({ id: numberedId() }),
    }),
    z.strictObject({
      kind: z.literal('erased').describe('The parcel was erased, with its events. No other parcel gets its id.'),
      sequence: z.int().min(1),
      parcel: z.strictObject({ id: numberedId() }),
    }),
    z.strictObject({
      kind: z.literal('join'),
      ...eventMembers(),
      joined: z.strictObject({ id: numberedId(), identifiers: z.array(identifier()) }).describe('The parcel that is now part of this one.'),
      entries: z.array(feedEntry()).describe('All entries of the parcel, newest first.'),
    }),
  ]),
)
