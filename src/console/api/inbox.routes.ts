import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { QUARANTINE_REASONS } from '../../core/domain/history/observation.ts'
import type { HeldGroup, InboxPush, InspectedPush } from '../../core/domain/ingest/inbox.ts'
import { HELD_STATES, INBOX_STATES } from '../../core/flow/admin/inbox/manage-inbox.ts'
import {
  type AnswerOf,
  idOf,
  instant as instantOf,
  jsonAnswer,
  location,
  named,
  numberedId,
  pageAnswer,
  wholeNumber,
} from '../../core/http/server/answer-schemas.ts'
import { presentInstant, presentJson } from '../../core/http/server/present.ts'
import { count, flag, instant, NO_QUERY, oneOf, page, query, text } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { jobSchema, presentStarted } from '../../upkeep/jobs/jobs.routes.ts'

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
  apiRoute({
    method: 'get',
    path: '/relay/inbox',
    summary: 'List received pushes',
    description: 'Newest first. A page with a `next` may hold fewer than asked for, even none.',
    scope: 'admin',
    params: {},
    query: query({
      ...page,
      cursor: count.nullable().default(null),
      state: oneOf(INBOX_STATES),
      reason: oneOf(QUARANTINE_REASONS).describe('Only pushes that are, or were, quarantined for this reason.'),
      parcel: text.describe('An identifier. A push that was not recorded counts if its body names the parcel.'),
      from: instant.describe('Received at this time or later.'),
      to: instant.describe('Received before this time.'),
    }),
    body: null,
    answers: () => ({ 200: pageAnswer('pushes', listedSchema()) }),
    problems: ['bad_tracking_number'],
    example: { path: {}, query: 'state=quarantined&limit=10' },
    answer:
      ({ manageInbox }: Pick<UseCases, 'manageInbox'>) =>
      async (ctx, call) => {
        const { pushes, next } = await manageInbox.list(call.query)
        presentJson(ctx, 200, { pushes: pushes.map(presentPush), next })
      },
  }),
  apiRoute({
    method: 'get',
    path: '/relay/inbox/:id',
    summary: 'Show a push',
    description: 'With its exact bytes, and as text if it is text.',
    scope: 'admin',
    params: { id: idOf('push') },
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('The push', pushSchema()) }),
    problems: ['not_found'],
    example: { path: { id: '1' } },
    answer:
      ({ manageInbox }: Pick<UseCases, 'manageInbox'>) =>
      async (ctx, { param }) =>
        presentJson(ctx, 200, presentInspected(await manageInbox.find(param('id')))),
  }),
  apiRoute({
    method: 'post',
    path: '/relay/inbox/:id/reprocess',
    summary: 'Reprocess a push that was not recorded',
    description: '',
    scope: 'admin',
    params: { id: idOf('push') },
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('The result', reprocessedSchema()) }),
    problems: ['not_found', 'not_reprocessable'],
    example: { path: { id: '2' } },
    answer:
      ({ manageInbox }: Pick<UseCases, 'manageInbox'>) =>
      async (ctx, { by, param }) => {
        const outcome = await manageInbox.reprocess(param('id'), by)
        presentJson<ReprocessedAnswer>(ctx, 200, { outcome: outcome.kind, reason: outcome.kind === 'quarantined' ? outcome.reason : null })
      },
  }),
  apiRoute({
    method: 'post',
    path: '/relay/inbox/:id/dismiss',
    summary: 'Dismiss a push that is in quarantine',
    description: 'The push stays unrecorded, and is left out when all pushes are reprocessed. It can still be reprocessed by its id.',
    scope: 'admin',
    params: { id: idOf('push') },
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('The push', pushSchema()) }),
    problems: ['not_found', 'not_dismissable'],
    example: { path: { id: '2' } },
    answer:
      ({ manageInbox }: Pick<UseCases, 'manageInbox'>) =>
      async (ctx, { by, param }) =>
        presentJson(ctx, 200, presentInspected(await manageInbox.dismiss(param('id'), by))),
  }),
  apiRoute({
    method: 'post',
    path: '/relay/inbox/reprocess',
    summary: 'Reprocess all pushes that were not recorded',
    description: 'The oldest first, without dismissed ones. More than 100 pushes become a job.',
    scope: 'admin',
    params: {},
    query: query({
      state: z.enum(HELD_STATES).default('quarantined'),
      reason: oneOf(QUARANTINE_REASONS).describe('Only pushes that are quarantined for this reason.'),
      dryRun: flag.describe('Only counts the pushes, without checking whether they would be recorded.'),
    }),
    body: null,
    answers: () => ({
      200: jsonAnswer(
        'The results; with `dryRun`, how many there are',
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
      ),
      202: jsonAnswer('A job reprocesses them', jobSchema(), location()),
    }),
    problems: ['too_many_jobs'],
    example: { path: {}, query: 'dryRun=true' },
    answer:
      ({ manageInbox }: Pick<UseCases, 'manageInbox'>) =>
      async (ctx, call) => {
        const answer = await manageInbox.reprocessAll(call.query, call.by)
        if (answer.kind === 'job') presentStarted(ctx, answer.job)
        else if (answer.kind === 'counted') {
          presentJson(ctx, 200, presentCounted(answer))
        } else presentJson(ctx, 200, { count: answer.count, dryRun: false, outcomes: answer.outcomes })
      },
  }),
  apiRoute({
    method: 'post',
    path: '/relay/inbox/dismiss',
    summary: 'Dismiss all pushes that are in quarantine',
    description: 'The pushes stay unrecorded. First ask the carrier about the parcels that only they name. More than 100 become a job.',
    scope: 'admin',
    params: {},
    query: query({
      state: z.enum(['quarantined']).default('quarantined'),
      reason: oneOf(QUARANTINE_REASONS).describe('Only pushes that are quarantined for this reason.'),
      dryRun: flag.describe('Only counts them.'),
    }),
    body: null,
    answers: () => ({
      200: jsonAnswer(
        'How many are dismissed; with `dryRun`, how many there are',
        z.union([countedSchema(), z.strictObject({ count: wholeNumber(), dryRun: z.literal(false) })]),
      ),
      202: jsonAnswer('A job dismisses them', jobSchema(), location()),
    }),
    problems: ['too_many_jobs'],
    example: { path: {}, query: 'dryRun=true' },
    answer:
      ({ manageInbox }: Pick<UseCases, 'manageInbox'>) =>
      async (ctx, call) => {
        const answer = await manageInbox.dismissAll(call.query, call.by)
        if (answer.kind === 'job') presentStarted(ctx, answer.job)
        else presentJson(ctx, 200, answer.kind === 'counted' ? presentCounted(answer) : { count: answer.count, dryRun: false })
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
