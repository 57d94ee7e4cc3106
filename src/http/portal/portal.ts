import Router from '@koa/router'
import type { Context } from 'koa'
import type { Actor } from '../../domain/admin/operator-action.ts'
import { AppError } from '../../domain/errors.ts'
import type { GiveOnce } from '../../flow/admin/give-once.ts'
import type { Overview } from '../../flow/admin/overview/overview.ts'
import type { ManageEndpoints } from '../../flow/delivery/manage-endpoints.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import type { AddressOf } from '../server/client-address.ts'
import { proveConnection } from '../server/connection-slots.ts'
import { noSuchAddress } from '../server/errors.ts'
import type { CountFailure, VisitorOf } from '../server/failures.ts'
import type { WithParams } from '../server/present.ts'
import { createAddresses } from './addresses.ts'
import { answerOnce } from './answer-once.ts'
import { type BackupPagesOptions, backupPages } from './backups/backups.page.ts'
import { carrierPage } from './carrier/carrier.page.ts'
import { type CheckPagesOptions, checkPages } from './check/check.page.ts'
import { type DeliveryPagesOptions, deliveryPages } from './deliveries/delivery.pages.ts'
import { NO_FORM, readForm } from './form.ts'
import type { FormIds } from './form-ids.ts'
import { type InboxPagesOptions, inboxPages } from './inbox/inbox.pages.ts'
import { type JobPagesOptions, jobPages } from './jobs/jobs.page.ts'
import type { View } from './layout.ts'
import { addLive } from './live/live.routes.ts'
import type { LiveStreams } from './live/live-streams.ts'
import { addLogin } from './login/login.routes.ts'
import { marksOf } from './marks.ts'
import { overviewPage } from './overview/overview.page.ts'
import type { PageAnswer, PageRoute } from './page-route.ts'
import { type ParcelPagesOptions, parcelPages } from './parcels/parcel.pages.ts'
import { present, presentAsset } from './present-page.ts'
import { problemPage } from './problem-pages.ts'
import { type RetentionPagesOptions, retentionPages } from './retention/retention.page.ts'
import { refuseOtherSites } from './same-site.ts'
import type { Person, SessionSettings, Sessions } from './session.ts'
import { type SettingsPagesOptions, settingsPages } from './settings/settings.page.ts'
import { type WebhookPagesOptions, webhookPages } from './webhooks/webhook.pages.ts'

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
    JobPagesOptions,
    BackupPagesOptions,
    RetentionPagesOptions,
    SettingsPagesOptions,
    CheckPagesOptions {
  readonly manageEndpoints: ManageEndpoints
  readonly overview: Overview
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
  readonly clock: Clock
  readonly log: Log
}

/** The header of requests by which an open page updates itself. They do not renew the session, or an open page would keep a person logged in. */
const LIVE_HEADER = 'Parcel-Relay-Live'

/** Creates the routes of the portal for operators, at `/` of the internal listener. The server makes whole pages, which work without script. */
export function createPortal(options: PortalOptions): Router {
  const { settings, sessions, formIds, giveOnce, overview, clock, log } = options
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

  const serve = (route: PageRoute) => async (ctx: WithParams) => {
    const view = viewOf(ctx)
    let person: Person | null = null
    try {
      if (route.method === 'post') refuseOtherSites(ctx, settings().publicOrigin)
      person = await sessions.personOf(ctx, ctx.get(LIVE_HEADER) === '')
      if (person === null) return present(ctx, { goTo: view.to`/login` })
      proveConnection(ctx.req)
      if (route.scope === 'admin' && person.scope !== 'admin')
        throw new AppError('forbidden', `This needs the scope admin, which ${person.name} does not have.`)
      const form = route.method === 'post' ? await readForm(ctx, route) : NO_FORM
      const path = settings().prefix + ctx.path
      const sent = await formIds.read(form, person, path)
      const parameters = new URLSearchParams(ctx.querystring)
      const visit = {
        ...view,
        marks: marksOf(await overview.glance()),
        isLive: route.method === 'get',
        person,
        by: { ...actorOf(person, options.addressOf(ctx.req)), ...(sent === null ? {} : { form: sent }) },
        ctx,
        form,
        param: (name: string) => ctx.params[name] ?? '',
        query: (name: string) => parameters.get(name) ?? '',
      }
      const answer = sent === null ? await route.answer(visit) : await answerOnce(giveOnce, { sent, route, visit, path })
      present(ctx, 'page' in answer ? { ...answer, page: formIds.addTo(answer.page, person) } : answer)
    } catch (error) {
      present(ctx, problemPage(error, { view, person, ctx, log }))
    }
  }
  const overviews: readonly PageRoute[] = [
    { method: 'get', path: '/', scope: 'status', answer: async (visit) => ({ page: overviewPage(visit, await overview.read()) }) },
    { method: 'get', path: '/carrier', scope: 'admin', answer: async (visit) => ({ page: carrierPage(visit, await overview.read()) }) },
  ]
  const pages = [
    parcelPages,
    webhookPages,
    deliveryPages,
    inboxPages,
    jobPages,
    backupPages,
    retentionPages,
    settingsPages,
    checkPages,
  ].flatMap((pagesOf) => pagesOf(options))
  for (const route of [...overviews, ...pages]) router[route.method](route.path, serve(route))

  addLogin(router, options, viewOf)
  addLive(router, options)
  router.get('/assets/:name', (ctx) => presentAsset(ctx, ctx.params.name ?? '', options.readAsset(ctx.params.name ?? '')))

  return router
}

function actorOf({ name, isFromProxy }: Person, address: string): Actor {
  return { kind: isFromProxy ? 'person' : 'app', name, address }
}
