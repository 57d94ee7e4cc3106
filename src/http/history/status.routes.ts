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

/** The carrier's own pull API: an app switches to the relay by changing its base URL. */
export function statusRoutes({ serve, authorize }: StatusRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  const answer = (kind: QuestionKind) => async (ctx: Context & { params: Record<string, string> }) => {
    const { username } = await authorize(ctx, 'status')
    // What the router cannot decode keeps its "%", which no identifier contains, so it is refused as a bad identifier.
    presentAnswer(
      ctx,
      await serve.ask({ app: username, identifier: ctx.params.identifier ?? '', language: languageOf(ctx.querystring), kind }),
    )
  }
  router.get('/v1/status/:identifier/latest', answer('latest'))
  router.get('/v1/status/:identifier/all', answer('all'))
  return router
}

/** The `language` parameter as sent: undefined if absent, a list if repeated. Other parameters are ignored. */
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

/** The headers of an answer, except its Content-Type. */
export function headersOf({ etag, ageSeconds, contentLanguage, cacheStatus }: Served): readonly (readonly [name: string, value: string])[] {
  return [
    ['ETag', etag],
    // Only the app may keep it, and it revalidates each time, which the ETag makes cheap.
    ['Cache-Control', 'private, no-cache'],
    ['Cache-Status', cacheStatus],
    ['Content-Language', contentLanguage],
    ...(ageSeconds === null ? [] : [['Age', String(ageSeconds)] as const]),
  ]
}
