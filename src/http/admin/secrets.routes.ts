import { z } from 'zod'
import { tokenRotationSchema } from '../../domain/admin/token-keys.ts'
import type { ManageSecrets } from '../../flow/admin/manage-secrets.ts'
import { instant, jsonAnswer } from '../server/answer-schemas.ts'
import { presentInstant, presentJson } from '../server/present.ts'
import { NO_QUERY } from '../server/query.ts'
import { apiRoute } from '../server/route.ts'

export interface SecretsRoutePorts {
  readonly manageSecrets: ManageSecrets
}

const BODY_BYTES_MAX = 1024

const resealSchema = () =>
  z.strictObject({
    key: z.string().describe('Names the key that encrypts now, by a digest.'),
    resealed: z.int().describe('Secrets that another key had encrypted.'),
    upToDate: z.int().describe('Secrets that this key had encrypted before.'),
    unreadable: z.array(z.string()).describe('Secrets that no key opens. Give each a new one, or restore its key.'),
  })

/** The relay's own keys. */
export const SECRETS_ROUTES = [
  apiRoute({
    method: 'post',
    path: '/relay/secrets/reseal',
    summary: 'Encrypt all secrets with the first at-rest key',
    description:
      'The keys of endpoints are encrypted in the store. After this, keys that follow the first one in `secrets.atRestKeys` are not needed any more, unless something is unreadable. May be repeated.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('What was encrypted', resealSchema()) }),
    problems: ['not_resealable'],
    example: { path: {} },
    answer:
      ({ manageSecrets }: SecretsRoutePorts) =>
      async (ctx, { by }) =>
        presentJson(ctx, 200, await manageSecrets.reseal(by)),
  }),
  apiRoute({
    method: 'post',
    path: '/relay/secrets/rotate-tokens',
    summary: 'Replace the key that signs tokens',
    description:
      'Tokens that apps have stay valid until they expire. With `at`, they end now: apps and people log in again, and other replicas follow within 10 s.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: {
      optional: true,
      bytesMax: BODY_BYTES_MAX,
      content: { 'application/json': { schema: () => tokenRotationSchema, example: {} } },
    },
    answers: () => ({
      200: jsonAnswer(
        'It is replaced',
        z.strictObject({ validUntil: instant().nullable().describe('When the last token from before expires; null: all have ended.') }),
      ),
    }),
    problems: [],
    example: { path: {} },
    answer:
      ({ manageSecrets }: SecretsRoutePorts) =>
      async (ctx, { by, body }) => {
        const { validUntilMs } = await manageSecrets.rotateTokens(body, by)
        presentJson(ctx, 200, { validUntil: validUntilMs === null ? null : presentInstant(validUntilMs) })
      },
  }),
]
