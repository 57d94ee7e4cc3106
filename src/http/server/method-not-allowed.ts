import type { Middleware } from 'koa'
import { EdgeError } from './errors.ts'

/** Runs after the routers. If the path of a request exists only with other methods, throws `method_not_allowed`, even for OPTIONS or TRACE. */
export function methodNotAllowed(): Middleware {
  return async (ctx, next) => {
    const matched: unknown = ctx.matched
    const allowed = Array.isArray(matched) ? matched.flatMap(methodsOf) : []
    if (allowed.length > 0 && !allowed.includes(ctx.method)) {
      const allow = [...new Set(allowed)].sort().join(', ')
      throw new EdgeError('method_not_allowed', `Allowed here: ${allow}.`, { allow })
    }
    await next()
  }
}

function methodsOf(layer: unknown): readonly string[] {
  if (typeof layer !== 'object' || layer === null || !('methods' in layer) || !Array.isArray(layer.methods)) return []
  return layer.methods.filter((method) => typeof method === 'string')
}
