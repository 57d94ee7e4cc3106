import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { noSuchAddress } from '../../core/http/server/errors.ts'
import type { PageAnswer } from './page-route.ts'

/** Forbids a page to load anything from other hosts, to be framed, to send forms elsewhere, and to contain inline scripts or styles. */
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'",
  "frame-ancestors 'none'; base-uri 'none'",
].join('; ')
const TYPES: Readonly<Record<string, string>> = { css: 'text/css', js: 'text/javascript', svg: 'image/svg+xml' }

/** Answers with a page, a redirect within the portal, or bytes to save. */
export function present(ctx: Context, answer: PageAnswer): void {
  ctx.set('Cache-Control', 'no-store')
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.set('Referrer-Policy', 'same-origin')
  ctx.set('Content-Security-Policy', POLICY)
  if ('goTo' in answer) {
    ctx.status = 303
    ctx.set('Location', answer.goTo.path)
    ctx.body = ''
    return
  }
  if ('file' in answer) {
    ctx.set('Content-Disposition', `attachment; filename="${answer.name}"`)
    ctx.type = 'application/octet-stream'
    ctx.body = Buffer.from(answer.file)
    return
  }
  ctx.status = answer.status ?? 200
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = answer.page
}

/** Answers with a file that pages load, such as the style sheet. `body` null: there is no such file. */
export function presentAsset(ctx: Context, name: string, body: Buffer | null): void {
  const type = TYPES[name.split('.').at(-1) ?? '']
  if (body === null || type === undefined) throw noSuchAddress()
  ctx.set('Cache-Control', 'no-cache')
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.set('ETag', `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`)
  ctx.type = `${type}; charset=utf-8`
  ctx.status = 200
  if (ctx.fresh) ctx.status = 304
  else ctx.body = body
}
