import Router from '@koa/router'
import type { Context } from 'koa'
import { AppError } from '../../domain/errors.ts'
import type { QuestionKind, Served } from '../../flow/history/answer.ts'
import type { Serve } from '../../flow/history/serve.ts'
import type { Authorize } from '../server/authorize.ts'

const PARAMETERS_MAX = 100

export interface StatusRouteOptions {
  readonly serve: Pick<Serve, 'ask'>
  readonly authorize: Authorize
}

/** The carrier's pull API (spec, "Endpoints"): an app switches to the relay by changing its base URL. */
export function statusRoutes({ serve, authorize }: StatusRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  const answer = (kind: QuestionKind) => async (ctx: Context & { params: Record<string, string> }) => {
    const { username } = await authorize(ctx, 'status')
    // The router decodes once and leaves what it cannot decode as it is: such text holds a "%", which no identifier does.
    presentAnswer(
      ctx,
      await serve.ask({ app: username, identifier: ctx.params.identifier ?? '', language: languageOf(ctx.querystring), kind }),
    )
  }
  router.get('/v1/status/:identifier/latest', answer('latest'))
  router.get('/v1/status/:identifier/all', answer('all'))
  return router
}

/** The `language` parameter as it stands: undefined when absent, a list when repeated. Other parameters are nobody's business here. */
function languageOf(query: string): unknown {
  const parameters = [...new URLSearchParams(query)]
  if (parameters.length > PARAMETERS_MAX || parameters.some(([name]) => name.startsWith('language['))) {
    throw new AppError('bad_language', 'language must be given at most once, and by this name.')
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

/** What an answer says besides its body and that body's type. */
export function headersOf({ etag, ageSeconds, contentLanguage, cacheStatus }: Served): readonly (readonly [name: string, value: string])[] {
  return [
    ['ETag', etag],
    // To be kept only by the app itself, and checked with the relay each time: the tag makes that cheap.
    ['Cache-Control', 'private, no-cache'],
    ['Cache-Status', cacheStatus],
    ['Content-Language', contentLanguage],
    ...(ageSeconds === null ? [] : [['Age', String(ageSeconds)] as const]),
  ]
}
