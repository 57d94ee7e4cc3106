import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { QUARANTINE_REASONS } from '../../core/domain/history/observation.ts'
import type { HeldGroup, InboxPush, InspectedPush } from '../../core/domain/ingest/inbox.ts'
import {
  type AnswerOf,
  idOf,
  instant as instantOf,
  location,
  named,
  numberedId,
  presentInstant,
  wholeNumber,
} from '../../core/http/server/answer-schemas.ts'
import { count, flag, instant, oneOf, page, query, text } from '../../core/http/server/route.ts'
import { callRoute, listRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import { jobSchema, startedJob } from '../jobs/jobs.routes.ts'
import { HELD_STATES, INBOX_STATES } from './manage-inbox.ts'

const quarantineReason = named('QuarantineReason', (): z.ZodType<string> => z.enum(QUARANTINE_REASONS))

const pushMembers = () => ({
  id: numberedId(),
  state: z.enum(INBOX_STATES),
  reason: quarantineReason().nullable().describe('Why the push is or was in quarantine; null: it never was.'),
  receivedAt: instantOf(),
  keyIndex: wholeNumber().describe('The index in `webhook.sharedKeys` of the key that matched.'),
  contentEncoding: z.string().nullable(),
  duplicates: wholeNumber().describe('How often the same push arrived again.'),
  bodyBytes: wholeNumber().nullable().describe('Null: the bytes are no longer kept.'),
  parcel: z
    .strictObject({ identifiers: z.array(z.string()) })
    .describe('The identifiers of its parcel. If the push was not recorded: the identifiers in its body.'),
  status: z.string().nullable().describe('The status of its event; null: the body has none, or is too long to be read for a list.'),
  eventAt: instantOf().nullable().describe('When its event happened; null: as with `status`.'),
  place: z
    .strictObject({
      member: z.string().nullable().describe('The wrong member, such as `eventTime` or `trackingIds[1]`; null: no single member is wrong.'),
      missing: z.boolean().describe('Whether the member is missing; `from` is then the end of the object.'),
      from: wholeNumber().describe('The first wrong byte, counted from 0.'),
      to: wholeNumber().describe('The byte after the last wrong one.'),
      found: z.string().describe('The text of these bytes, at most 60 characters; bytes that are no text are shown in hexadecimal.'),
      unknown: z
        .array(z.string())
        .describe('If the member is missing: members of the event that the relay does not know, at most 3. One may be its new name.'),
    })
    .nullable()
    .describe('Where its body is wrong; null: the fault is not in the body, or the body is too long to be read for a list.'),
})

const listedSchema = named('ListedPush', () => z.strictObject(pushMembers()))

const pushSchema = named('Push', () =>
  z.strictObject({
    ...pushMembers(),
    body: z.base64().nullable().describe('The exact bytes; null: they are no longer kept.'),
    text: z.string().nullable().describe('The bytes as text; null: they are not UTF-8.'),
  }),
)

export type ListedPushAnswer = AnswerOf<typeof listedSchema>
export type PushAnswer = AnswerOf<typeof pushSchema>

const countedSchema = () =>
  z.strictObject({
    count: wholeNumber(),
    dryRun: z.literal(true),
    reasons: z.array(
      z.strictObject({ reason: quarantineReason().nullable(), count: wholeNumber(), first: instantOf(), last: instantOf() }),
    ),
  })

const reprocessedSchema = () =>
  z.strictObject({
    outcome: z.enum(['recorded', 'duplicate', 'quarantined', 'expired', 'erased']),
    reason: quarantineReason().nullable(),
  })

export type ReprocessedAnswer = AnswerOf<typeof reprocessedSchema>

/** Received pushes, byte for byte. */
export const INBOX_ROUTES = [
  listRoute('/relay/inbox', {
    summary: 'List received pushes',
    description: 'Newest first. A page with a `next` may hold fewer than asked for, even none.',
    query: query({
      ...page,
      cursor: count.nullable().default(null),
      state: oneOf(INBOX_STATES),
      reason: oneOf(QUARANTINE_REASONS).describe('Only pushes that are, or were, quarantined for this reason.'),
      parcel: text.describe('An identifier. A push that was not recorded counts if its body names the parcel.'),
      from: instant.describe('Received at this time or later.'),
      to: instant.describe('Received before this time.'),
    }),
    items: ['pushes', listedSchema],
    problems: ['bad_tracking_number'],
    example: 'state=quarantined&limit=10',
    read: ({ manageInbox }, asked) => manageInbox.list(asked),
    present: presentPush,
  }),
  callRoute('get', '/relay/inbox/:id', {
    summary: 'Show a push',
    description: 'With its exact bytes, and as text if it is text.',
    params: { id: idOf('push') },
    answers: { 200: ['The push', pushSchema] },
    problems: ['not_found'],
    answer: async ({ manageInbox }, { param }) => [200, presentInspected(await manageInbox.find(param('id')))],
  }),
  callRoute('post', '/relay/inbox/:id/reprocess', {
    summary: 'Reprocess a push that was not recorded',
    params: { id: idOf('push', '2') },
    answers: { 200: ['The result', reprocessedSchema] },
    problems: ['not_found', 'not_reprocessable'],
    answer: async ({ manageInbox }, { by, param }) => {
      const outcome = await manageInbox.reprocess(param('id'), by)
      return [200, { outcome: outcome.kind, reason: outcome.kind === 'quarantined' ? outcome.reason : null }]
    },
  }),
  callRoute('post', '/relay/inbox/:id/dismiss', {
    summary: 'Dismiss a push that is in quarantine',
    description: 'The push stays unrecorded, and is left out when all pushes are reprocessed. It can still be reprocessed by its id.',
    params: { id: idOf('push', '2') },
    answers: { 200: ['The push', pushSchema] },
    problems: ['not_found', 'not_dismissable'],
    answer: async ({ manageInbox }, { by, param }) => [200, presentInspected(await manageInbox.dismiss(param('id'), by))],
  }),
  queryRoute('post', '/relay/inbox/reprocess', {
    summary: 'Reprocess all pushes that were not recorded',
    description: 'The oldest first, without dismissed ones. More than 100 pushes become a job.',
    query: query({
      state: z.enum(HELD_STATES).default('quarantined'),
      reason: oneOf(QUARANTINE_REASONS).describe('Only pushes that are quarantined for this reason.'),
      dryRun: flag.describe('Only counts the pushes, without checking whether they would be recorded.'),
    }),
    answers: {
      200: [
        'The results; with `dryRun`, how many there are',
        () =>
          z.union([
            countedSchema(),
            z.strictObject({
              count: wholeNumber(),
              dryRun: z.literal(false),
              outcomes: z.strictObject({
                recorded: wholeNumber(),
                duplicate: wholeNumber(),
                quarantined: wholeNumber(),
                expired: wholeNumber(),
                erased: wholeNumber().describe('They named only erased parcels and were not kept.'),
              }),
            }),
          ]),
      ],
      202: ['A job reprocesses them', jobSchema, location],
    },
    problems: ['too_many_jobs'],
    example: 'dryRun=true',
    answer: async (ports, { by, query }) => {
      const answer = await ports.manageInbox.reprocessAll(query, by)
      if (answer.kind === 'job') return startedJob(answer.job, ports)
      if (answer.kind === 'counted') return [200, presentCounted(answer)]
      return [200, { count: answer.count, dryRun: false, outcomes: answer.outcomes }]
    },
  }),
  queryRoute('post', '/relay/inbox/dismiss', {
    summary: 'Dismiss all pushes that are in quarantine',
    description: 'The pushes stay unrecorded. First ask the carrier about the parcels that only they name. More than 100 become a job.',
    query: query({
      state: z.enum(['quarantined']).default('quarantined'),
      reason: oneOf(QUARANTINE_REASONS).describe('Only pushes that are quarantined for this reason.'),
      dryRun: flag.describe('Only counts them.'),
    }),
    answers: {
      200: [
        'How many are dismissed; with `dryRun`, how many there are',
        () => z.union([countedSchema(), z.strictObject({ count: wholeNumber(), dryRun: z.literal(false) })]),
      ],
      202: ['A job dismisses them', jobSchema, location],
    },
    problems: ['too_many_jobs'],
    example: 'dryRun=true',
    answer: async (ports, { by, query }) => {
      const answer = await ports.manageInbox.dismissAll(query, by)
      if (answer.kind === 'job') return startedJob(answer.job, ports)
      if (answer.kind === 'counted') return [200, presentCounted(answer)]
      return [200, { count: answer.count, dryRun: false }]
    },
  }),
]

function presentCounted({
  count: all,
  groups,
}: {
  readonly count: number
  readonly groups: readonly HeldGroup[]
}): AnswerOf<typeof countedSchema> {
  const reasons = groups.map(({ reason, count: many, first, last }) => ({
    reason,
    count: many,
    first: presentInstant(first.receivedAtMs),
    last: presentInstant(last.receivedAtMs),
  }))
  return { count: all, dryRun: true, reasons }
}

function presentPush(push: InboxPush): ListedPushAnswer {
  const { inboxId, receivedAtMs, identifiers, fault } = push
  return {
    id: String(inboxId),
    state: push.state,
    reason: push.reason,
    receivedAt: presentInstant(receivedAtMs),
    keyIndex: push.keyIndex,
    contentEncoding: push.contentEncoding,
    duplicates: push.duplicates,
    bodyBytes: push.bodyBytes,
    parcel: { identifiers },
    status: push.status,
    eventAt: presentInstant(push.eventAtMs),
    place:
      fault === null
        ? null
        : {
            member: fault.member,
            missing: fault.isMissing,
            from: fault.from,
            to: fault.to,
            found: fault.found,
            unknown: fault.unknown,
          },
  }
}

/** Presents a push with its exact bytes in Base64, and as text if they are UTF-8. */
function presentInspected({ body, ...push }: InspectedPush): PushAnswer {
  const bytes = body === null ? null : Buffer.from(body)
  const asText = bytes !== null && isUtf8(bytes) ? bytes.toString() : null
  return { ...presentPush(push), body: bytes?.toString('base64') ?? null, text: asText }
}
