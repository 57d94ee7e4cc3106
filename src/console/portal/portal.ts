import Router from '@koa/router'
import type { Context, Middleware } from 'koa'
import type { Log } from '../../core/flow/ports.ts'
import type { CountFailure, VisitorOf } from '../../core/http/server/authorize.ts'
import { noSuchAddress } from '../../core/http/server/problems.ts'
import type { AddressOf } from '../../core/http/server/request-headers.ts'
import type { WithParams } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import type { OperatorEventTable } from '../events/operator-events.ts'
import { auditPages } from './audit/audit.page.ts'
import { carrierPage } from './carrier/carrier.page.ts'
import { deliveryPages } from './deliveries/delivery.page.ts'
import type { FormIds, GiveOnce } from './form.ts'
import { createAddresses, withQuery } from './html.ts'
import { getPage, type PageAnswer, type PageRoute, type View } from './layout.ts'
import { addLive, type LiveStreams } from './live/live-streams.ts'
import { addLogin } from './login/login.routes.ts'
import { overviewPage } from './overview/overview.page.ts'
import { type ParcelSection, parcelPages } from './parcels/parcel.pages.ts'
import { createPageTable, createServePage, type PageTable, pageMeant, presentAsset } from './serve-page.ts'
import type { SessionSettings, Sessions } from './session.ts'
import { reloadPages, type SettingsPagesOptions, settingsPages } from './settings/settings.page.ts'
import { webhookPages } from './webhooks/webhook.pages.ts'

export interface PortalSettings extends SessionSettings {
  readonly enabled: boolean
  /** The origin of `portal.publicUrl`; null: none is configured. */
  readonly publicOrigin: string | null
}

export interface PortalOptions extends UseCases, SettingsPagesOptions {
  readonly live: LiveStreams
  readonly settings: () => PortalSettings
  readonly sessions: Sessions
  readonly formIds: FormIds
  readonly giveOnce: GiveOnce<PageAnswer>
  readonly visitorOf: VisitorOf
  readonly countFailure: CountFailure
  readonly addressOf: AddressOf
  /** Null: there is no such file. */
  readonly readAsset: (name: string) => Buffer | null
  readonly version: string
  readonly log: Log
  /** Says what an operator event means. */
  readonly wordEvent: OperatorEventTable['word']
  /** What wings show on the page of a parcel. */
  readonly parcelSections: readonly ParcelSection[]
}

export interface Portal {
  readonly routes: ReturnType<Router['routes']>
  /** Runs after all routes. Answers browsers with a page about an address that has none. */
  readonly lost: Middleware
}

/** Makes the pages of a subject. */
export type PagesOf<Options> = (options: Options) => readonly PageRoute[]

/**
 * Creates the portal for operators, at `/` of the internal listener. The server makes whole pages, which work without script.
 * @param offered pages of other wings; they are found before those of the console
 */
export function createPortal(options: PortalOptions, offered: readonly PageRoute[]): Portal {
  const { settings, overview, clock } = options
  const router = new Router({ strict: true, sensitive: true })
  router.use(async (ctx, next) => {
    // The manual is served even without the portal, and needs the style sheet.
    if (!settings().enabled && !ctx.path.startsWith('/assets/')) throw noSuchAddress()
    await next()
  })
  const viewOf = (ctx: Context): View => ({
    to: createAddresses(settings().prefix),
    nowMs: clock.now(),
    host: ctx.get('Host'),
    version: options.version,
    publicOrigin: settings().publicOrigin,
    marks: {},
    isLive: false,
  })

  const overviews: readonly PageRoute[] = [
    getPage('/', async (visit) => ({ page: overviewPage(visit, await overview.read(), options.wordEvent) }), { scope: 'status' }),
    getPage('/carrier', async (visit) => ({ page: carrierPage(visit, await overview.read()) })),
  ]
  const pages = [parcelPages, webhookPages, deliveryPages, settingsPages, auditPages, reloadPages].flatMap((pagesOf) => pagesOf(options))
  const routes = [...offered, ...overviews, ...pages]
  const table = createPageTable(routes)
  const servePage = createServePage(options, table, viewOf)
  for (const route of routes)
    router[route.method](route.path, (ctx: WithParams) => servePage.serve(ctx, route, (name) => ctx.params[name] ?? ''))

  addLogin(router, { ...options, servePage, pages: table }, viewOf)
  addLive(router, options)
  router.get('/assets/:name', (ctx) => presentAsset(ctx, ctx.params.name ?? '', options.readAsset(ctx.params.name ?? '')))
  // Keep these routes last: they answer what no other page does.
  const sections = routes.map(({ path }) => /^\/[a-z]+/.exec(path)?.[0]).filter((section) => section !== undefined)
  for (const section of new Set(sections))
    router.get(new RegExp(`^${section}(?:/.*)?$`), (ctx) => servePage.serve(ctx, lost(table, ctx), () => ''))
  return {
    routes: router.routes(),
    async lost(ctx, next) {
      const isAsked = settings().enabled && ['GET', 'HEAD'].includes(ctx.method) && ctx.accepts('json', 'html') === 'html'
      if (isAsked) await servePage.serve(ctx, lost(table, ctx), () => '')
      else await next()
    },
  }
}

/** Leads from the address of a form, or one with a slash at its end, to the page that is meant. Any other address has a page that says so. */
function lost(table: PageTable, { path, querystring }: Context): PageRoute {
  return getPage(
    '/',
    async ({ to }) => {
      const meant = pageMeant(table, path)
      if (meant === null) throw noSuchAddress()
      return { goTo: withQuery({ path: to`/`.path.replace(/\/$/, '') + meant.path }, Object.fromEntries(new URLSearchParams(querystring))) }
    },
    { scope: 'status' },
  )
}
