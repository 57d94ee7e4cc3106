import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import type { QuarantineReason } from '../../domain/history/observation.ts'
import type { RecordOutcome } from '../../domain/history/recording.ts'
import type { InboxPush, InspectedPush } from '../../domain/ingest/inbox.ts'
import { INBOX_STATES, type ManageInbox } from '../../flow/admin/manage-inbox.ts'
import { idOf, instant, jsonAnswer, named, numberedId, oneOfAll, pageAnswer, wholeNumber } from '../server/answer-schemas.ts'
import { presentInstant, presentJson } from '../server/present.ts'
import { count, NO_QUERY, oneOf, page, query } from '../server/query.ts'
import { apiRoute } from '../server/route.ts'

export interface InboxRoutePorts {
  readonly manageInbox: ManageInbox
}

const quarantineReason = named('QuarantineReason', () =>
  oneOfAll<QuarantineReason>({
    content_encoding: true,
    utf8: true,
    json_syntax: true,
    too_deep: true,
    schema: true,
    tracking_id: true,
    event_time: true,
    parcel_full: true,
    failed: true,
  }),
)

const pushMembers = () => ({
  id: numberedId(),
  state: z.enum(INBOX_STATES),
  reason: quarantineReason().nullable().describe('Why it is quarantined; null: it is not.'),
  receivedAt: instant(),
  keyIndex: wholeNumber().describe('The index in `webhook.sharedKeys` of the key that matched.'),
  contentEncoding: z.string().nullable(),
  duplicates: wholeNumber().describe('How often it arrived again.'),
  bodyBytes: wholeNumber().nullable().describe('Null: the bytes are no longer kept.'),
})

const listedSchema = named('ListedPush', () => z.strictObject(pushMembers()))

const pushSchema = named('Push', () =>
  z.strictObject({
    ...pushMembers(),
    body: z.base64().nullable().describe('The exact bytes; null: they are no longer kept.'),
    text: z.string().nullable().describe('The same as text; null: they are not UTF-8.'),
  }),
)

/** Received pushes, byte for byte. */
export const INBOX_ROUTES = [
  apiRoute({
    method: 'get',
    path: '/relay/inbox',
    summary: 'List received pushes',
    description: 'Newest first.',
    scope: 'admin',
    params: {},
    query: query({ ...page, cursor: count.nullable().default(null), state: oneOf(INBOX_STATES) }),
    body: null,
    answers: () => ({ 200: pageAnswer('pushes', listedSchema()) }),
    problems: [],
    example: { path: {}, query: 'state=quarantined&limit=10' },
    answer:
      ({ manageInbox }: InboxRoutePorts) =>
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
      ({ manageInbox }: InboxRoutePorts) =>
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
    answers: () => ({
      200: jsonAnswer(
        'What became of it',
        z.strictObject({
          outcome: oneOfAll<RecordOutcome['kind']>({ recorded: true, duplicate: true, quarantined: true, expired: true }),
          reason: quarantineReason().nullable(),
        }),
      ),
    }),
    problems: ['not_found', 'not_reprocessable'],
    example: { path: { id: '2' } },
    answer:
      ({ manageInbox }: InboxRoutePorts) =>
      async (ctx, { by, param }) => {
        const outcome = await manageInbox.reprocess(param('id'), by)
        presentJson(ctx, 200, { outcome: outcome.kind, reason: outcome.kind === 'quarantined' ? outcome.reason : null })
      },
  }),
]

function presentPush({ inboxId, state, reason, receivedAtMs, keyIndex, contentEncoding, duplicates, bodyBytes }: InboxPush): object {
  return {
    id: String(inboxId),
    state,
    reason,
    receivedAt: presentInstant(receivedAtMs),
    /** The index in webhook.sharedKeys of the key that matched. */
    keyIndex,
    contentEncoding,
    duplicates,
    bodyBytes,
  }
}

/** A push with its exact bytes in Base64, and as text if they are UTF-8. */
function presentInspected({ body, ...push }: InspectedPush): object {
  const bytes = body === null ? null : Buffer.from(body)
  const text = bytes !== null && isUtf8(bytes) ? bytes.toString() : null
  return { ...presentPush(push), body: bytes?.toString('base64') ?? null, text }
}
