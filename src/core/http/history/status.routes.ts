import type { Context } from 'koa'
import { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import type { QuestionKind, Served } from '../../flow/history/answer.ts'
import type { Serve } from '../../flow/history/serve.ts'
import { IDENTIFIER, named } from '../server/answer-schemas.ts'
import type { Authorize } from '../server/authorize.ts'
import type { WithParams } from '../server/present.ts'
import { ownRoute } from '../server/route.ts'

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

/** The carrier's own pull API. `plain-requests.ts` has a fast path that answers nearly all of these requests. */
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
export function headersOf({ etag, ageSeconds, contentLanguage, cacheStatus }: Served): readonly (readonly [name: string, value: string])[] {
  return [
    ['ETag', etag],
    // Only the app may keep the answer, and must ask each time whether it is still current. With the ETag, asking is cheap.
    ['Cache-Control', 'private, no-cache'],
    ['Cache-Status', cacheStatus],
    ['Content-Language', contentLanguage],
    ...(ageSeconds === null ? [] : [['Age', String(ageSeconds)] as const]),
  ]
}
