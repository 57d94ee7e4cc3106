import { z } from 'zod'
import { describeCause, MISMATCH_CODES } from '../../domain/ingest/mismatch/mismatch-causes.ts'
import { type KeptRefusal, REFUSALS_KEPT } from '../../domain/ingest/refusal.ts'
import type { ManageInbox } from '../../flow/admin/inbox/manage-inbox.ts'
import { instant, named, numberedId, pageAnswer, wholeNumber } from '../server/answer-schemas.ts'
import { presentInstant, presentJson } from '../server/present.ts'
import { count, page, query } from '../server/query.ts'
import { apiRoute } from '../server/route.ts'

export interface RefusalsRoutePorts {
  readonly manageInbox: Pick<ManageInbox, 'refusals'>
}

const refusalSchema = named('Refusal', () =>
  z.strictObject({
    id: numberedId(),
    at: instant(),
    address: z.string().describe('Who sent it. Behind a proxy only if `listen.public.trustProxy` names it.'),
    explained: z.boolean().describe('Whether the causes together make the signature match. If not, they are all that is known.'),
    causes: z.array(
      z.strictObject({
        code: z.enum(MISMATCH_CODES),
        detail: z.string().nullable().describe('Which one, such as `HMAC-SHA1`; null: the code says all.'),
        explanation: z.string().describe('The same in sentences, with what mends it.'),
      }),
    ),
    key: z.string().nullable().describe('The setting of the key it was signed with; null: not known, or none. Never the key.'),
    cutShort: z.boolean().describe('Whether the body is so large that not everything was tried.'),
    headers: z.record(z.string(), z.string()).describe('Some of its headers, each cut to 200 characters. Never the signature.'),
    body: z
      .strictObject({ bytes: wholeNumber(), sha256: z.string().regex(/^[0-9a-f]{64}$/) })
      .nullable()
      .describe('Its size and digest. The body itself is not kept. Null: it was not read to its end, or is larger than 256 KB.'),
  }),
)

/** Pushes that were refused, and why. */
export const REFUSALS_ROUTES = [
  apiRoute({
    method: 'get',
    path: '/relay/refusals',
    summary: 'List refused pushes, explained',
    description: `Pushes whose signature did not match, newest first. Each replica examines at most one such push a second, and the last ${REFUSALS_KEPT} are kept. Anybody can send such pushes.`,
    scope: 'admin',
    params: {},
    query: query({ ...page, cursor: count.nullable().default(null) }),
    body: null,
    answers: () => ({ 200: pageAnswer('refusals', refusalSchema()) }),
    problems: [],
    example: { path: {}, query: 'limit=10' },
    answer:
      ({ manageInbox }: RefusalsRoutePorts) =>
      async (ctx, call) => {
        const { refusals, next } = await manageInbox.refusals(call.query)
        presentJson(ctx, 200, { refusals: refusals.map(present), next })
      },
  }),
]

function present({ refusalId, atMs, address, verdict, causes, key, isCutShort, headers, body }: KeptRefusal): object {
  return {
    id: String(refusalId),
    at: presentInstant(atMs),
    address,
    explained: verdict === 'explained',
    causes: causes.map((cause) => ({ ...cause, explanation: describeCause(cause) })),
    key,
    cutShort: isCutShort,
    headers,
    body,
  }
}
