import type { IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import type { Authenticate } from '../../flow/admin/tokens/authenticate.ts'
import type { Question, QuestionKind, Served } from '../../flow/history/answer.ts'
import type { Serve } from '../../flow/history/serve.ts'
import { IDENTIFIER, jsonAnswer, named } from '../server/answer-schemas.ts'
import type { Authorize, CountFailure, VisitorOf } from '../server/authorize.ts'
import { proveConnection } from '../server/connection-slots.ts'
import { headerValues } from '../server/request-headers.ts'
import { OPEN, ownRoute, type WithParams } from '../server/route.ts'
import { readJson } from '../server/text-body.ts'

const PARAMETERS_MAX = 100

export interface StatusRoutePorts {
  readonly serve: Pick<Serve, 'ask'>
  readonly authorize: Authorize
}

/** A loose object: the carrier may add members, and the relay passes them on. */
const statusEntry = named('StatusEntry', () =>
  z.looseObject({
    status: z.string(),
    detailedStatus: z.string(),
    eventTimestamp: z.string(),
    location: z.string(),
    detailedStatusDescription: z.string(),
    consumerDescription: z.string().nullable(),
    displayToConsumer: z.boolean(),
  }),
)

const answerMembers = () => ({ trackingIds: z.array(z.string()), distributionType: z.string() })

const answerHeaders = () =>
  z.object({
    ETag: z.string().describe('Send it back in `If-None-Match` to get a 304 while nothing has changed.'),
    Age: z.string().optional().describe('Seconds since the carrier last reported on the parcel; absent: it never has.'),
    'Content-Language': z.string().describe('The languages of the texts.'),
    'Cache-Status': z
      .string()
      .describe(
        '`hit`: from the store; `fwd=miss`: just fetched; `fwd=stale`: just refreshed; `detail=stale`: the carrier could not be asked.',
      ),
  })

const statusRow = {
  method: 'get',
  listener: 'internal',
  scope: 'status',
  params: { identifier: IDENTIFIER },
  query: z.object({
    language: z
      .string()
      .optional()
      .describe('The language of the texts, such as sv or sv-SE; without it the first of `upstream.languages`.'),
  }),
  body: null,
} as const
const PROBLEMS = ['bad_tracking_number', 'bad_language', 'not_found', 'upstream_unavailable'] as const

const answersOf = (schema: z.ZodType) => ({
  200: { description: 'As the carrier answers', headers: answerHeaders(), content: { 'application/json': schema } },
  304: { description: 'Nothing has changed since the `ETag` in `If-None-Match`', headers: answerHeaders() },
})

/** The carrier's own pull API. A fast path (`plainRequests`) answers nearly all of these requests. */
export const STATUS_ROUTES = [
  ownRoute({
    ...statusRow,
    path: '/v1/status/:identifier/latest',
    summary: 'The newest status of a parcel',
    description: "The carrier's own API: an application switches to the relay by changing its base URL.",
    answers: () => answersOf(named('LatestStatus', () => z.looseObject({ status: statusEntry(), ...answerMembers() }))()),
    problems: [...PROBLEMS, 'no_entry'],
    example: { path: { identifier: 'AB000000001SE' } },
    handle: answers('latest'),
  }),
  ownRoute({
    ...statusRow,
    path: '/v1/status/:identifier/all',
    summary: 'The whole history of a parcel',
    description: "The carrier's own API. Newest first.",
    answers: () => answersOf(named('AllStatuses', () => z.looseObject({ statuses: z.array(statusEntry()), ...answerMembers() }))()),
    problems: PROBLEMS,
    example: { path: { identifier: 'AB000000002SE' }, query: 'language=en' },
    handle: answers('all'),
  }),
]

function answers(kind: QuestionKind) {
  return ({ serve, authorize }: StatusRoutePorts) =>
    async (ctx: WithParams): Promise<void> => {
      const { username } = await authorize(ctx, 'status')
      // If the router cannot decode an identifier, the text keeps its "%". No identifier contains a "%", so the text is refused.
      presentAnswer(
        ctx,
        await serve.ask({ app: username, identifier: ctx.params.identifier ?? '', language: languageOf(ctx.querystring), kind }),
      )
    }
}

/** Returns the `language` parameter as it was sent: undefined if absent, a list if repeated. Other parameters are ignored. */
function languageOf(query: string): unknown {
  const parameters = [...new URLSearchParams(query)]
  if (parameters.length > PARAMETERS_MAX || parameters.some(([name]) => name.startsWith('language['))) {
    throw new AppError('bad_language', 'Give the parameter language at most once, and by exactly this name.')
  }
  const values = parameters.filter(([name]) => name === 'language').map(([, value]) => value)
  return values.length > 1 ? values : values[0]
}

function presentAnswer(ctx: Context, served: Served): void {
  ctx.status = 200
  for (const [name, value] of headersOf(served)) ctx.set(name, value)
  if (ctx.fresh) {
    ctx.status = 304
    return
  }
  ctx.body = served.body
  ctx.set('Content-Type', 'application/json')
}

/** All headers of an answer but its Content-Type. */
function headersOf({ etag, ageSeconds, contentLanguage, cacheStatus }: Served): readonly (readonly [name: string, value: string])[] {
  return [
    ['ETag', etag],
    // Only the app may keep the answer, and must ask each time whether it is still current. With the ETag, asking is cheap.
    ['Cache-Control', 'private, no-cache'],
    ['Cache-Status', cacheStatus],
    ['Content-Language', contentLanguage],
    ...(ageSeconds === null ? [] : [['Age', String(ageSeconds)] as const]),
  ]
}

/** Nearly every request to the pull API has this form. */
const PLAIN = /^\/v1\/status\/([A-Za-z0-9]{4,40})\/(all|latest)(?:\?language=([A-Za-z]{2,8}))?$/
const BEARER = 'Bearer '
/** Nearly every answer is smaller than this. Larger answers are sent without a copy, so that slow readers share the cached bytes. */
const COPIED_BYTES_MAX = 16 * 1024

interface PlainRequestOptions {
  readonly serve: Pick<Serve, 'ask' | 'fromCache'>
  readonly authenticate: Pick<Authenticate, 'recognize'>
}

/**
 * A fast path for nearly all requests: those in plain form, from an app whose token was verified before. It avoids routing, promises and
 * setting headers one by one. Together they cost twice as much as a cached answer. Other requests go to the status routes, which give equal answers.
 */
export function plainRequests({ serve, authenticate }: PlainRequestOptions): Middleware {
  const read = (req: IncomingMessage): Question | null => {
    if (req.method !== 'GET' || req.headers['if-none-match'] !== undefined) return null
    const plain = PLAIN.exec(req.url ?? '')
    const [bearer, ...more] = headerValues(req, 'authorization')
    if (plain === null || bearer === undefined || more.length > 0 || !bearer.startsWith(BEARER)) return null
    const app = authenticate.recognize(bearer.slice(BEARER.length), 'status')
    if (app === null) return null
    proveConnection(req)
    const [, identifier = '', kind, language] = plain
    return { app: app.username, identifier, language, kind: kind === 'all' ? 'all' : 'latest' }
  }
  return (ctx, next) => {
    const question = read(ctx.req)
    if (question === null) return next()
    const kept = serve.fromCache(question)
    if (kept === null) return serve.ask(question).then((served) => send(ctx, served))
    send(ctx, kept)
    return Promise.resolve()
  }
}

function send(ctx: Context, served: Served): void {
  ctx.respond = false
  const { body } = served
  const head = [...headersOf(served), ['Content-Type', 'application/json'], ['Content-Length', String(body.byteLength)]]
  ctx.res.writeHead(200, head.flat())
  // Node adds a latin1 text to the head and sends both in one write. A buffer would need a second write.
  if (body.byteLength <= COPIED_BYTES_MAX) ctx.res.end(body.toString('latin1'), 'latin1')
  else ctx.res.end(body)
}

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
