import { createHash, randomUUID } from 'node:crypto'
import type { Context } from 'koa'
import type { Actor, SentForm } from '../../core/domain/admin/operator-action.ts'
import { counted, countText } from '../../core/domain/amounts.ts'
import { conditionOf } from '../../core/domain/delivery/endpoint-state.ts'
import { AppError, isStorageFailure, lacksRoom, NO_ROOM_TEXT } from '../../core/domain/errors.ts'
import type { Log } from '../../core/flow/ports.ts'
import { proveConnection } from '../../core/http/server/connection-slots.ts'
import { EdgeError, noSuchAddress, statusOf } from '../../core/http/server/problems.ts'
import { type AddressOf, traceOf } from '../../core/http/server/request-headers.ts'
import type { Overview } from '../overview/overview.ts'
import { type Glance, isInTrouble, isWarning, MANY_QUARANTINED, problemsOf, pushStanding } from '../problems/verdict.ts'
import { type Form, type FormField, type FormIds, fillForm, type GiveOnce, NO_FORM, readForm, refuseOtherSites } from './form.ts'
import { buttonLink, html, type Markup, type Part } from './html.ts'
import { type Marks, type PageAnswer, type PageRoute, renderBare, renderPage, type View, type Visit } from './layout.ts'
import { keptOf, loginPage } from './login/login-form.ts'
import { crumbs, headline, sentenceOnPage } from './parts.ts'
import type { Person, SessionSettings, Sessions } from './session.ts'
import { type FieldErrors, fieldErrors } from './webhooks/webhook-form.ts'

export interface ServePageOptions {
  readonly settings: () => SessionSettings & { readonly publicOrigin: string | null }
  readonly sessions: Pick<Sessions, 'personOf'>
  readonly formIds: FormIds
  readonly giveOnce: GiveOnce<PageAnswer>
  readonly overview: Pick<Overview, 'glance'>
  readonly addressOf: AddressOf
  readonly log: Log
}

export type ServePage = ReturnType<typeof createServePage>

export interface Filled {
  /** The path of the form, below the prefix. */
  readonly path: string
  readonly fields: readonly FormField[]
  readonly note: Markup
  readonly errors: FieldErrors
}

/** The header of requests by which an open page updates itself. They do not renew the session, or an open page would keep a person logged in. */
const LIVE_HEADER = 'Parcel-Relay-Live'

/** Serves pages to people who are logged in. To others it shows the login, at the address that they have asked for. */
export function createServePage(options: ServePageOptions, pages: PageTable, viewOf: (ctx: Context) => View) {
  const { settings, sessions, formIds, giveOnce, overview, log } = options

  async function visitOf(ctx: Context, person: Person, param: (name: string) => string): Promise<Visit> {
    const parameters = new URLSearchParams(ctx.method === 'POST' ? '' : ctx.querystring)
    return {
      ...viewOf(ctx),
      marks: marksOf(await overview.glance()),
      isLive: ctx.method !== 'POST',
      person,
      by: actorOf(person, options.addressOf(ctx.req)),
      ctx,
      form: NO_FORM,
      param,
      query: (name) => parameters.get(name) ?? '',
    }
  }

  async function answer(ctx: Context, route: PageRoute, visit: Visit, form: Form): Promise<PageAnswer> {
    const path = settings().prefix + ctx.path
    const sent = await formIds.read(form, visit.person, path)
    const full = { ...visit, form, by: { ...visit.by, ...(sent === null ? {} : { form: sent }) } }
    return sent === null ? await route.answer(full) : await answerOnce(giveOnce, { sent, route, visit: full, path })
  }

  /** Shows the page of a form again, with what was typed and what is wrong with it. Null: the mistake is not about the form. */
  async function showMistake(ctx: Context, visit: Visit, form: Form, error: unknown): Promise<PageAnswer | null> {
    const isMistake = (error instanceof AppError || error instanceof EdgeError) && statusOf(error) < 500 && statusOf(error) !== 403
    if (!isMistake || ctx.method !== 'POST') return null
    const errors = fieldErrors(error) ?? {}
    const said = Object.values(errors)
    const note = html`<div class="note bad" role="alert"><strong>Nothing was done.</strong> ${sentenceOnPage(said.length === 0 ? error.message : said.join(' '), visit.nowMs)}</div>`
    const filled = { path: ctx.path, fields: form.entries(), note, errors }
    const shown = await filledPage(visit, filled).catch(() => null)
    return shown === null || !('page' in shown) ? null : { page: shown.page, status: statusOf(error) }
  }

  async function filledPage(visit: Visit, { path, fields, note, errors }: Filled): Promise<PageAnswer> {
    const found = pages.pageOfForm(path) ?? nothing()
    if (found.route.scope === 'admin') refuseReaders(visit.person)
    const shown = await found.route.answer({ ...visit, param: found.param })
    if (!('page' in shown)) return shown
    return { page: fillForm(shown.page, { path: settings().prefix + path, fields, note, errors }) }
  }

  const withIds = (shown: PageAnswer, person: Person): PageAnswer =>
    'page' in shown ? { ...shown, page: formIds.addTo(shown.page, person) } : shown

  return {
    /** Answers a request for a page, or a form. */
    async serve(ctx: Context, route: PageRoute, param: (name: string) => string) {
      const view = viewOf(ctx)
      let person: Person | null = null
      try {
        if (route.method === 'post') refuseOtherSites(ctx, settings().publicOrigin)
        person = await sessions.personOf(ctx, ctx.get(LIVE_HEADER) === '')
        if (person === null) return present(ctx, { page: loginPage(view, { asked: await keptOf(ctx, route) }), status: 401 })
        proveConnection(ctx.req)
        if (route.scope === 'admin') refuseReaders(person)
        const visit = await visitOf(ctx, person, param)
        let form = NO_FORM
        try {
          if (route.method === 'post') form = await readForm(ctx, route)
          present(ctx, withIds(await answer(ctx, route, visit, form), person))
        } catch (error) {
          const mistake = await showMistake(ctx, visit, form, error)
          if (mistake === null) throw error
          present(ctx, withIds(mistake, person))
        }
      } catch (error) {
        present(ctx, problemPage(error, { view, person, ctx, log }))
      }
    },
    /** Shows the page of a form with the fields that were sent to `path`. The form is not carried out. */
    showFilled: async (ctx: Context, person: Person, filled: Filled): Promise<PageAnswer> =>
      withIds(await filledPage(await visitOf(ctx, person, () => ''), filled), person),
  }
}

/** Finds the page that somebody means who opens the address of a form, or one with a slash at its end, as a link. */
export function pageMeant({ find, pageOfForm }: PageTable, path: string): FoundPage | null {
  return find('post', path) === null ? find('get', path.replace(/\/+$/, '')) : pageOfForm(path)
}

function refuseReaders({ scope, name }: Person): void {
  if (scope !== 'admin') throw new AppError('forbidden', `This needs the scope admin, which ${name} does not have.`)
}

function nothing(): never {
  throw noSuchAddress()
}

function actorOf({ name, isFromProxy }: Person, address: string): Actor {
  return { kind: isFromProxy ? 'person' : 'app', name, address }
}

/** Answers a form. If it was sent before, its order is not carried out again. `path`: the address of the form. */
async function answerOnce(
  giveOnce: GiveOnce<PageAnswer>,
  { sent, route, visit, path }: { readonly sent: SentForm; readonly route: PageRoute; readonly visit: Visit; readonly path: string },
): Promise<PageAnswer> {
  const { again = async () => ({ goTo: { path: path.replace(/\/[^/]+$/, '') } }) } = route
  return await giveOnce(sent, {
    give: () => route.answer(visit),
    again: (former) => again(visit, former),
    isRefused: (answer) => 'page' in answer && (answer.status ?? 200) >= 400,
  })
}

/** Returns the words that the side bar shows next to each section with a problem, such as "2 problems". */
export function marksOf(glance: Glance): Marks {
  const { endpoints, counts, carrier, pushes } = glance
  const problems = problemsOf(glance)
  const isBad = problems.some((problem) => !isWarning(problem))
  const failing = endpoints.filter((state) => conditionOf(state) === 'failing').length
  const stopped = endpoints.filter((state) => isInTrouble(state)).length - failing
  return {
    ...(problems.length === 0 ? {} : { overview: [isBad ? 'bad' : 'warn', counted(problems.length, 'problem', 'problems')] }),
    ...(failing > 0
      ? { webhooks: ['bad', `${countText(failing)} failing`] }
      : stopped > 0
        ? { webhooks: ['bad', `${countText(stopped)} disabled`] }
        : {}),
    ...(counts.quarantined === 0
      ? {}
      : { inbox: [counts.quarantined < MANY_QUARANTINED ? 'warn' : 'bad', `${countText(counts.quarantined)} quarantined`] }),
    ...(carrier.credentials === 'refused'
      ? { carrier: ['bad', 'refused'] }
      : carrier.breaker.state !== 'closed'
        ? { carrier: ['bad', 'failing'] }
        : pushes.health === 'silent'
          ? { carrier: ['bad', 'silent'] }
          : pushStanding(pushes) === 'lossy'
            ? { carrier: ['warn', 'lossy'] }
            : {}),
  }
}

interface FoundPage {
  readonly route: PageRoute
  /** The path below the prefix of the portal, as it stands in an address. */
  readonly path: string
  readonly param: (name: string) => string
}

/** Finds routes by paths, which may have been received: only a path of a route is found. */
export type PageTable = ReturnType<typeof createPageTable>

/** The characters of a part of a path. */
const PART = "([\\w.~%!$&'()*+,;=:@-]+)"

export function createPageTable(routes: readonly PageRoute[]) {
  const rows = routes.map((route) => ({ route, pattern: new RegExp(`^${route.path.replaceAll(/:\w+/g, PART)}$`) }))

  function find(method: PageRoute['method'], path: string): FoundPage | null {
    for (const { route, pattern } of rows) {
      const values = route.method === method ? pattern.exec(path)?.slice(1) : undefined
      if (values === undefined) continue
      const names = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name)
      return { route, path, param: (name) => decoded(values[names.indexOf(name)] ?? '') }
    }
    return null
  }

  return {
    find,
    /** Finds the page with the form that is sent to `path`: the page at the same path, or at the path without its last parts. */
    pageOfForm(path: string): FoundPage | null {
      for (let at = path; at !== ''; at = at.replace(/\/[^/]*$/, '')) {
        const found = find('get', at)
        if (found !== null) return found
      }
      return null
    },
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

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

/** Makes the page that answers a failed request. An unexpected failure is logged with a random id, which the page shows too. */
export function problemPage(
  error: unknown,
  { view, person, ctx, log }: { readonly view: View; readonly person: Person | null; readonly ctx: Context; readonly log: Log },
): { readonly status: number; readonly page: string } {
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
  const { title } = problem
  return { status, page: person === null ? renderBare(view, title, main) : renderPage({ ...view, person }, null, title, main) }
}

function describe(
  status: number,
  error: unknown,
  { view: { to, nowMs }, ctx, instance }: { readonly view: View; readonly ctx: Context; readonly instance: string },
): { readonly title: string; readonly lead: Part; readonly help: Markup | null } {
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
