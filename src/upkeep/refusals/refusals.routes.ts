import { z } from 'zod'
import { type AnswerOf, instant, named, numberedId, presentInstant, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { count, page, query } from '../../core/http/server/route.ts'
import { listRoute } from '../../core/http/server/route-shapes.ts'
import { describeCause, MISMATCH_CODES } from './mismatch-causes.rules.ts'
import { type KeptRefusal, REFUSALS_KEPT } from './refusals.rules.ts'

const refusalSchema = named('Refusal', () =>
  z.strictObject({
    id: numberedId(),
    at: instant(),
    address: z.string().describe('The sender. Behind a proxy it is known only if `listen.public.trustProxy` names the proxy.'),
    explained: z.boolean().describe('Whether the causes explain the signature completely. If not, they are all that is known.'),
    causes: z.array(
      z.strictObject({
        code: z.enum(MISMATCH_CODES),
        detail: z.string().nullable().describe('More about the cause, such as `HMAC-SHA1`; null: the code says everything.'),
        explanation: z.string().describe('The cause in sentences, and what to do about it.'),
      }),
    ),
    key: z.string().nullable().describe('The setting that holds the key with which it was signed; null: not known. Never the key itself.'),
    cutShort: z.boolean().describe('Whether the body is so large that not every explanation was tried.'),
    headers: z.record(z.string(), z.string()).describe('Some of its headers, each cut to 200 characters. Never the signature.'),
    body: z
      .strictObject({ bytes: wholeNumber(), sha256: z.string().regex(/^[0-9a-f]{64}$/) })
      .nullable()
      .describe('Its size and digest. The body itself is not kept. Null: it was not read to its end, or is larger than 256 KB.'),
  }),
)

export type RefusalAnswer = AnswerOf<typeof refusalSchema>

export const REFUSALS_ROUTES = [
  listRoute('/relay/refusals', {
    summary: 'List refused pushes, explained',
    description: `Pushes whose signature did not match, newest first. Each replica examines at most one such push a second, and the last ${REFUSALS_KEPT} are kept. Anybody can send such pushes.`,
    query: query({ ...page, cursor: count.nullable().default(null) }),
    items: ['refusals', refusalSchema],
    example: 'limit=10',
    read: ({ refusals }, asked) => refusals(asked),
    present,
  }),
]

function present({ refusalId, atMs, address, verdict, causes, key, isCutShort, headers, body }: KeptRefusal): RefusalAnswer {
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
