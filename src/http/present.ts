import type { Context } from 'koa'

export type WithParams = Context & { params: Record<string, string> }

/** An answer of the relay's own API: never kept by anybody on the way. */
export function presentJson(ctx: Context, status: number, body: object): void {
  ctx.status = status
  ctx.body = JSON.stringify(body)
  ctx.set('Content-Type', 'application/json')
  ctx.set('Cache-Control', 'no-store')
}

export function presentInstant(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}
