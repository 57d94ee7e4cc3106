import Router from '@koa/router'
import type { Context } from 'koa'
import type { App, Scope } from '../../flow/admin/authenticate.ts'
import type { Authorize } from './authorize.ts'
import { readJson, refuseOtherTypes } from './json-body.ts'
import type { WithParams } from './present.ts'
import { type QuerySchema, readQuery } from './query.ts'

/** An authorized request: the calling app and its checked input. */
export interface ApiCall<Query> {
  readonly app: App
  readonly query: Query
  /** A variable part of the path, as raw text. */
  readonly param: (name: string) => string
  /** The parsed JSON body; undefined: there was none, or the route reads it itself. */
  readonly body: unknown
}

export interface ApiRoute<Query> {
  readonly scope: Scope
  /** Every parameter the route accepts; `NO_QUERY`: none. */
  readonly query: QuerySchema<Query>
  /** Size limit of the JSON body; undefined: no body is read. */
  readonly bodyBytesMax?: number
  readonly answer: (ctx: Context, call: ApiCall<Query>) => Promise<void>
}

export interface ApiRoutes {
  readonly router: Router
  add<Query>(method: 'get' | 'post' | 'put' | 'patch' | 'delete', path: `/relay/${string}`, route: ApiRoute<Query>): void
}

/**
 * The routes under /relay. Each declares its scope and its parameters, so that no route can forget to refuse the rest. Authorization comes
 * first, then the query, and only then is the body read.
 */
export function createApiRoutes(authorize: Authorize): ApiRoutes {
  const router = new Router({ strict: true, sensitive: true })
  return {
    router,
    add(method, path, { scope, query, bodyBytesMax, answer }) {
      const readBody = bodyBytesMax === undefined ? null : readJson(bodyBytesMax)
      const handle = async (ctx: WithParams) => {
        const app = await authorize(ctx, scope)
        const call = { app, query: readQuery(query, ctx.querystring), param: (name: string) => ctx.params[name] ?? '' }
        if (readBody !== null) {
          refuseOtherTypes(ctx)
          await readBody(ctx, async () => {})
        }
        await answer(ctx, { ...call, body: readBody === null ? undefined : ctx.request.body })
      }
      router[method](path, handle)
    },
  }
}
