import { z } from 'zod'
import { LIST_BODY, LIST_COLUMN, lineErrors, withList } from '../../console/parcels/parcels.routes.ts'
import { type AnswerOf, IDENTIFIER, identifier, instant, named, numberedId, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { flag, query } from '../../core/http/server/route.ts'
import { queryRoute } from '../../core/http/server/route-shapes.ts'
import type { ErasureReport } from './manage-erasures.ts'

const members = () => ({
  dryRun: z.boolean(),
  at: instant().describe('When the order was carried out.'),
  by: z.strictObject({ kind: z.string(), name: z.string() }).describe('Who gave the order.'),
  relay: z.string().describe('The id of the relay. Replicas share one.'),
  receipts: z
    .array(
      z.strictObject({
        identifier: identifier(),
        outcome: z
          .enum(['erased', 'erased_before'])
          .describe('`erased_before`: an earlier order had erased it. It was searched for again.'),
        erasedAt: instant(),
        parcel: numberedId()
          .nullable()
          .describe('The id of the erased parcel, as in the `erased` event of the feed; null: it had no parcel.'),
        marks: z
          .array(z.string())
          .describe('Keyed digests of the identifier and of others of its parcel, as in the tombstones and the audit trail. At most 100.'),
      }),
    )
    .describe('What was erased by this order or before, of the first 5,000 identifiers. A dry run has only what was erased before.'),
  removed: z
    .strictObject({
      parcels: wholeNumber(),
      identifiers: wholeNumber(),
      sightings: wholeNumber(),
      answers: wholeNumber().describe('Answers of the carrier.'),
      pushes: wholeNumber().describe('Pushes in the inbox, including pushes that were not recorded.'),
      deliveries: wholeNumber(),
      attempts: wholeNumber(),
      texts: wholeNumber().describe('Texts that no other parcel has.'),
      mentions: wholeNumber().describe('Records of orders, events, jobs and refused pushes that named erased parcels.'),
    })
    .describe('How many rows of each kind.'),
  unreadable: wholeNumber().describe(
    'Stored records that stay as they are although they may name an erased parcel: they cannot be read, or name it within a longer word.',
  ),
  endpoints: z
    .array(z.strictObject({ id: numberedId(), name: z.string() }))
    .describe('The endpoints that were sent erased data. Ask their owners to erase it too.'),
  backups: z.array(z.string()).describe('Backups that may hold erased data, with one that is being made.'),
  backupsUnreadable: z
    .string()
    .nullable()
    .describe(
      'Why the folder of backups could not be read, so that backups are missing in `backups`; null: it was read, or there is none.',
    ),
  restoredAt: instant()
    .nullable()
    .describe(
      'When the store was last restored; null: never. `backups` has all backups from before that, because they cannot be compared.',
    ),
  stores: z
    .array(z.string())
    .describe('Files of stores that a restore, a move or a killed command has left behind, and that may hold erased data. Delete them.'),
  storage: z.enum(['clean', 'pending']).describe('Whether the files of the store may still hold erased data. `clean`: they do not.'),
  storageBecause: z.string().nullable().describe('Why `storage` is `pending`; null: it is `clean`.'),
})

const reportSchema = named('ErasureReport', () => z.strictObject(members()))

const listReportSchema = named('ErasureListReport', () =>
  z.strictObject({
    ...members(),
    lines: wholeNumber(),
    erased: wholeNumber(),
    erasedBefore: wholeNumber(),
    unknown: wholeNumber().describe('Identifiers that no parcel has.'),
    failed: wholeNumber().describe('Lines without an identifier.'),
    errors: lineErrors().describe('The first 1,000 bad or unknown lines.'),
  }),
)

export type ErasureAnswer = AnswerOf<typeof reportSchema>
export type ErasureListAnswer = AnswerOf<typeof listReportSchema>

const dryRun = flag.describe('`true`: only says what would be erased.')

/** Erases parcels for good. */
export const ERASURES_ROUTES = [
  queryRoute('delete', '/relay/parcels/:identifier', {
    summary: 'Erase a parcel for good',
    description:
      'Everything about the parcel is deleted: pushes, answers, history, deliveries, and mentions in other records. For an unknown identifier the answer is 404, and nothing is changed. Later pushes about it are answered 200 and not kept. Repeat the request to search again.',
    params: { identifier: IDENTIFIER },
    query: query({ dryRun }),
    answers: { 200: ['What was erased', reportSchema] },
    problems: ['bad_tracking_number', 'not_found'],
    answer: async ({ manageErasures }, { by, param, query: asked }) => [
      200,
      presentReport(await manageErasures.forget(param('identifier'), asked, by)),
    ],
  }),
  queryRoute('post', '/relay/parcels/forget', {
    summary: 'Erase a list of parcels for good',
    description:
      'Does the same as `DELETE /relay/parcels/{identifier}` for each line. Bad and unknown lines are reported by number. At most 100,000 lines of at most 4,096 characters.',
    query: query({ dryRun, column: LIST_COLUMN }),
    body: LIST_BODY,
    answers: { 200: ['What was erased, and which lines are bad or unknown', listReportSchema] },
    problems: ['body_too_large'],
    example: 'dryRun=true',
    answer: async ({ manageErasures }, { ctx, by, query: asked }) => [
      200,
      presentReport(await withList(ctx, (list) => manageErasures.forgetList({ ...list, ...asked, by }))),
    ],
  }),
]

const isoTime = (atMs: number) => new Date(atMs).toISOString()

function presentReport<Report extends ErasureReport>({ storage, atMs, restoredAtMs, by, receipts, ...report }: Report) {
  return {
    ...report,
    at: isoTime(atMs),
    restoredAt: restoredAtMs === null ? null : isoTime(restoredAtMs),
    by: { kind: by.kind, name: by.name },
    receipts: receipts.map(({ identifier: erased, outcome, erasedAtMs, parcelId, marks }) => ({
      identifier: erased,
      outcome,
      erasedAt: isoTime(erasedAtMs),
      parcel: parcelId === null || parcelId === 0 ? null : String(parcelId),
      marks,
    })),
    storage: storage.state,
    storageBecause: storage.state === 'clean' ? null : storage.because,
  }
}
