import { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import type { Authenticate } from '../../flow/admin/tokens/authenticate.ts'
import { jsonAnswer } from '../server/answer-schemas.ts'
import { proveConnection } from '../server/connection-slots.ts'
import type { CountFailure, VisitorOf } from '../server/failures.ts'
import { OPEN, ownRoute } from '../server/route.ts'
import { readJson } from '../server/text-body.ts'

const BODY_BYTES_MAX = 16 * 1024
const PASSWORD_LENGTH_MAX = 1024

export interface TokenRoutePorts {
  readonly authenticate: Pick<Authenticate, 'issueToken'>
  readonly visitorOf: VisitorOf
  readonly countFailure: CountFailure
}

const credentialsSchema = () => z.object({ username: z.string(), password: z.string().max(PASSWORD_LENGTH_MAX) })

/** Tokens of apps, in exactly the carrier's shape. */
export const TOKEN_ROUTES = [
  ownRoute({
    ...OPEN,
    method: 'post',
    path: '/auth/token',
    summary: 'Log in',
    description: 'The token is valid for `token.lifetime`. Send it as `Authorization: Bearer TOKEN`.',
    body: {
      bytesMax: BODY_BYTES_MAX,
      content: { 'application/json': { schema: credentialsSchema, example: { username: 'shop', password: 'shop-demo-password' } } },
    },
    answers: () => ({ 200: jsonAnswer('The token', z.strictObject({ token: z.string() })) }),
    problems: ['unauthorized', 'too_many_requests', 'storage_unavailable'],
    handle: ({ authenticate, visitorOf, countFailure }: TokenRoutePorts) => {
      const readBody = readJson(BODY_BYTES_MAX)
      return async (ctx) => {
        await readBody(ctx, async () => {})
        const credentials = readCredentials(ctx.request.body)
        try {
          ctx.body = JSON.stringify({ token: await authenticate.issueToken(credentials, visitorOf(ctx.req, credentials.username)) })
          proveConnection(ctx.req)
        } catch (error) {
          throw error instanceof AppError && error.code === 'unauthorized' ? await countFailure(ctx.req, error) : error
        }
        ctx.set('Content-Type', 'application/json')
        ctx.set('Cache-Control', 'no-store')
      }
    },
  }),
]

function readCredentials(body: unknown): { readonly username: string; readonly password: string } {
  if (typeof body === 'object' && body !== null && 'username' in body && 'password' in body) {
    const { username, password } = body
    if (typeof username === 'string' && typeof password === 'string' && password.length <= PASSWORD_LENGTH_MAX)
      return { username, password }
  }
  throw new AppError('bad_request', 'Send a JSON object with the strings "username" and "password".')
}
