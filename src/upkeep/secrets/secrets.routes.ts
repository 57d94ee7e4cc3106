import { z } from 'zod'
import { tokenRotationSchema } from '../../core/domain/admin/token-keys.ts'
import { type AnswerOf, instant, jsonAnswer } from '../../core/http/server/answer-schemas.ts'
import { presentInstant, presentJson } from '../../core/http/server/present.ts'
import { NO_QUERY } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'

const BODY_BYTES_MAX = 1024

const resealSchema = () =>
  z.strictObject({
    key: z.string().describe('A digest of the at-rest key that encrypts now.'),
    resealed: z.int().describe('How many secrets were encrypted with another at-rest key before.'),
    upToDate: z.int().describe('How many secrets were encrypted with this at-rest key already.'),
    unreadable: z.array(z.string()).describe('Secrets that no at-rest key opens. Replace each of them, or restore the at-rest key.'),
  })

const rotatedSchema = () =>
  z.strictObject({ validUntil: instant().nullable().describe('When the last token of the old key expires; null: all have ended.') })

export type ResealAnswer = AnswerOf<typeof resealSchema>
export type RotatedAnswer = AnswerOf<typeof rotatedSchema>

/** Replaces the relay's own keys: the at-rest keys and the key that signs tokens. */
export const SECRETS_ROUTES = [
  apiRoute({
    method: 'post',
    path: '/relay/secrets/reseal',
    summary: 'Encrypt all secrets with the first at-rest key',
    description:
      'The store holds secrets, such as the keys of endpoints, only in encrypted form. Afterwards the first entry of `secrets.atRestKeys` is enough, unless something is unreadable. May be repeated.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('What was encrypted', resealSchema()) }),
    problems: ['not_resealable'],
    example: { path: {} },
    answer:
      ({ manageSecrets }: Pick<UseCases, 'manageSecrets'>) =>
      async (ctx, { by }) =>
        presentJson<ResealAnswer>(ctx, 200, await manageSecrets.reseal(by)),
  }),
  apiRoute({
    method: 'post',
    path: '/relay/secrets/rotate-tokens',
    summary: 'Replace the key that signs tokens',
    description:
      'Tokens that apps have stay valid until they expire. With the body `{ "at": "now" }` they end now. Apps and people must then log in again; other replicas notice it within 10 s.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: {
      optional: true,
      bytesMax: BODY_BYTES_MAX,
      content: { 'application/json': { schema: () => tokenRotationSchema, example: {} } },
    },
    answers: () => ({ 200: jsonAnswer('The key is replaced', rotatedSchema()) }),
    problems: [],
    example: { path: {} },
    answer:
      ({ manageSecrets }: Pick<UseCases, 'manageSecrets'>) =>
      async (ctx, { by, body }) => {
        const { validUntilMs } = await manageSecrets.rotateTokens(body, by)
        presentJson<RotatedAnswer>(ctx, 200, { validUntil: presentInstant(validUntilMs) })
      },
  }),
]
