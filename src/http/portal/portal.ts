import Router from '@koa/router'
import type { Context } from 'koa'
import type { Actor } from '../../domain/admin/operator-action.ts'
import { AppError } from '../../domain/errors.ts'
import type { Overview } from '../../flow/admin/overview.ts'
import type { ManageEndpoints } from '../../flow/delivery/manage-endpoints.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import type { AddressOf } from '../server/client-address.ts'
import { proveConnection } from '../server/connection-places.ts'
import type { CountFailure, VisitorOf } from '../server/failures.ts'
import type { WithParams } from '../server/present.ts'
import { createAddresses } from './addresses.ts'
import { carrierPage } from './carrier/carrier.page.ts'
import { type DeliveryPagesOptions, deliveryPages } from './deliveries/delivery.pages.ts'
import { type Form, readForm } from './form.ts'
import { type InboxPagesOptions, inboxPages } from './inbox/inbox.pages.ts'
import type { View } from './layout.ts'
import { loginPage } from './login/login.page.ts'
import { marksOf } from './marks.ts'
import { overviewPage } from './overview/overview.page.ts'
import type { PageAnswer, PageRoute } from './page-route.ts'
import { type ParcelPagesOptions, parcelPages } from './parcels/parcel.pages.ts'
import { present, presentAsset } from './present-page.ts'
import { problemPage } from './problem-pages.ts'
import { refuseOtherSites } from './same-site.ts'
import type { Person, SessionSettings, Sessions } from './session.ts'
import { type SettingsPagesOptions, settingsPages } from './settings/settings.page.ts'
import { type WebhookPagesOptions, webhookPages } from './webhooks/webhook.pages.ts'

/** What is configured about the portal, now. */
export interface PortalSettings extends SessionSettings {
  readonly enabled: boolean
  /** The origin of `portal.publicUrl`; null: none is configured. */
  readonly publicOrigin: string | null
}

export interface PortalOptions
  extends WebhookPagesOptions,
    ParcelPagesOptions,
    DeliveryPagesOptions,
    InboxPagesOptions,
    SettingsPagesOptions {
  readonly manageEndpoints: ManageEndpoints
  readonly overview: Overview
  readonly settings: () => PortalSettings
  readonly sessions: Sessions
  readonly visitorOf: VisitorOf
  readonly countFailure: CountFailure
  readonly addressOf: AddressOf
  /** The style sheet, the script and the icon, by name; null: there is no such file. */
  readonly readAsset: (name: string) => Buffer | null
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

const NO_FORM: Form = { get: () => '', all: () => [] }
const PASSWORD_LENGTH_MAX = 1024

/** The portal for operators, at `/` of the internal listener. Every page is made here, whole, and works without script. */
export function createPortal(options: PortalOptions): Router {
  const { settings, sessions, overview, clock, log } = options
  const router = new Router({ strict: true, sensitive: true })
  router.use(async (ctx, next) => {
    // The manual's pages, which have no switch, need the style sheet too.
    if (!settings().enabled && !ctx.path.startsWith('/assets/')) throw new AppError('not_found', 'There is nothing at this address.')
    await next()
  })
  const viewOf = (ctx: Context): View => ({
    to: createAddresses(settings().prefix),
    nowMs: clock.now(),
    host: ctx.get('Host'),
    version: options.version,
    publicOrigin: settings().publicOrigin,
    marks: {},
  })

  const serve = (route: PageRoute) => async (ctx: WithParams) => {
    const view = viewOf(ctx)
    let person: Person | null = null
    try {
      if (route.method === 'post') refuseOtherSites(ctx, settings().publicOrigin)
      person = await sessions.personOf(ctx)
      if (person === null) return present(ctx, { goTo: view.to`/login` })
      proveConnection(ctx.req)
      if (route.scope === 'admin' && person.scope !== 'admin')
        throw new AppError('forbidden', `This needs the scope admin, which ${person.name} does not have.`)
      const form = route.method === 'post' ? await readForm(ctx) : NO_FORM
      const parameters = new URLSearchParams(ctx.querystring)
      const visit = {
        ...view,
        marks: marksOf(await overview.glance()),
        person,
        by: actorOf(person, options.addressOf(ctx.req)),
        ctx,
        form,
        param: (name: string) => ctx.params[name] ?? '',
        query: (name: string) => parameters.get(name) ?? '',
      }
      present(ctx, await route.answer(visit))
    } catch (error) {
      present(ctx, problemPage(error, { view, person, ctx, log }))
    }
  }
  const overviews: readonly PageRoute[] = [
    { method: 'get', path: '/', scope: 'status', answer: async (visit) => ({ page: overviewPage(visit, await overview.read()) }) },
    { method: 'get', path: '/carrier', scope: 'admin', answer: async (visit) => ({ page: carrierPage(visit, await overview.read()) }) },
  ]
  const pages = [parcelPages, webhookPages, deliveryPages, inboxPages, settingsPages].flatMap((pagesOf) => pagesOf(options))
  for (const route of [...overviews, ...pages]) router[route.method](route.path, serve(route))

  router.get('/login', (ctx) => present(ctx, { page: loginPage(viewOf(ctx)) }))
  router.post('/login', async (ctx) => {
    const view = viewOf(ctx)
    try {
      refuseOtherSites(ctx, settings().publicOrigin)
      present(ctx, await logIn(ctx, view))
    } catch (error) {
      present(ctx, problemPage(error, { view, person: null, ctx, log }))
    }
  })
  router.post('/logout', (ctx) => {
    const view = viewOf(ctx)
    refuseOtherSites(ctx, settings().publicOrigin)
    sessions.logOut(ctx)
    present(ctx, { goTo: view.to`/login` })
  })
  router.get('/assets/:name', (ctx) => presentAsset(ctx, ctx.params.name ?? '', options.readAsset(ctx.params.name ?? '')))

  return router

  async function logIn(ctx: Context, view: View): Promise<PageAnswer> {
    const form = await readForm(ctx)
    const [username, password] = [form.get('username'), form.get('password')]
    try {
      if (password.length > PASSWORD_LENGTH_MAX) throw new AppError('unauthorized', 'The username or the password is wrong.')
      await sessions.logIn(ctx, { username, password }, options.visitorOf(ctx.req, username))
      proveConnection(ctx.req)
      return { goTo: view.to`/` }
    } catch (error) {
      if (!(error instanceof AppError) || (error.code !== 'unauthorized' && error.code !== 'too_many_requests')) throw error
      const failure = error.code === 'unauthorized' ? await options.countFailure(ctx.req, error) : error
      const isWrong = failure.code === 'unauthorized'
      const refusal = isWrong
        ? 'The user name or the password is wrong.'
        : 'Too many wrong passwords from this address. Wait a minute, then try again.'
      return { page: loginPage(view, { username, refusal }), status: isWrong ? 401 : 429 }
    }
  }
}

function actorOf({ name, isFromProxy }: Person, address: string): Actor {
  return { kind: isFromProxy ? 'person' : 'app', name, address }
}
