import { createHash, randomUUID } from 'node:crypto'
import type { Context } from 'koa'
import { AppError, isStorageFailure, lacksRoom, NO_ROOM_TEXT } from '../../core/domain/errors.ts'
import type { Log } from '../../core/flow/ports.ts'
import { EdgeError, noSuchAddress, statusOf } from '../../core/http/server/errors.ts'
import { traceOf } from '../../core/http/server/request-headers.ts'
import { buttonLink, html, type Markup, type Part } from './html.ts'
import { type PageAnswer, renderBare, renderPage, type View } from './layout.ts'
import { crumbs, headline, sentenceOnPage } from './parts.ts'
import type { Person } from './session.ts'

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

interface Problem {
  readonly title: string
  readonly lead: Part
  readonly help: Markup | null
}

interface ProblemPage {
  readonly status: number
  readonly page: string
}

/** Makes the page that answers a failed request. An unexpected failure is logged with a random id, which the page shows too. */
export function problemPage(
  error: unknown,
  { view, person, ctx, log }: { readonly view: View; readonly person: Person | null; readonly ctx: Context; readonly log: Log },
): ProblemPage {
  const isStore = isStorageFailure(error) || lacksRoom(error)
  const status = isStore ? 503 : statusOf(error)
  const instance = randomUUID()
  const request = { instance, ...traceOf(ctx.req) }
  if (status === 500) log.error({ err: error, ...request }, 'a page failed unexpectedly')
  else if (isStore) log.warn({ err: error, ...request }, 'a page could not be shown')
  const problem = describe(status, error, { view, ctx, instance })
  const main = html`${person === null ? null : crumbs([view.to`/`, 'Overview'])}
${headline({ title: problem.title, lead: problem.lead })}
${problem.help}`
  const page = { title: problem.title, main }
  return { status, page: person === null ? renderBare(view, page) : renderPage(view, { ...page, section: null, person }) }
}

function describe(
  status: number,
  error: unknown,
  { view: { to, nowMs }, ctx, instance }: { readonly view: View; readonly ctx: Context; readonly instance: string },
): Problem {
  const again =
    ctx.method === 'GET' ? html`<p><a class="btn" href="">Try again</a></p>` : html`<p>${buttonLink(to`/`, 'Go to the start')}</p>`
  const detail = error instanceof AppError || error instanceof EdgeError ? sentenceOnPage(error.message, nowMs) : null
  if (status === 403) return { title: 'Not allowed', lead: detail, help: html`<p>${buttonLink(to`/`, 'Go to the start')}</p>` }
  if (status === 404) {
    const find = html`<form class="filters" role="search" action="${to`/parcels`.path}" aria-label="Parcels"><div><label for="find">Tracking number or tracking id</label><input id="find" name="query" type="search" autocomplete="off" spellcheck="false"></div><div><button class="btn" type="submit">Find</button></div></form>`
    return { title: 'There is nothing here', lead: detail, help: find }
  }
  if (lacksRoom(error) || (error instanceof AppError && error.message === NO_ROOM_TEXT))
    return { title: 'The disk of the store is full', lead: sentenceOnPage(NO_ROOM_TEXT, nowMs), help: again }
  if (isStorageFailure(error) || (error instanceof AppError && error.code === 'storage_unavailable')) {
    return {
      title: 'The store cannot be read',
      lead: 'Until it can be read, no page can be shown. Pushes are answered with 503 meanwhile, so the carrier sends them again.',
      help: again,
    }
  }
  if (status === 500) {
    return {
      title: 'This page failed',
      lead: 'The relay goes on working; only this page is missing.',
      help: html`<p>The log has the failure under <code>${instance}</code>.</p>${again}`,
    }
  }
  return { title: 'That was not done', lead: detail, help: again }
}
