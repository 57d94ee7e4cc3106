import type { RequestListener } from 'node:http'
import { healthRoute } from '../admin/health.routes.ts'
import { type WebhookRouteOptions, webhookRoutes } from '../ingest/webhook.routes.ts'
import { type AppOptions, createListener } from './listener.ts'

export interface PublicOptions extends AppOptions, WebhookRouteOptions {}

/** The listener for the carrier: the webhook and `/healthz`, nothing else. */
export function createPublicListener(options: PublicOptions): RequestListener {
  return createListener(options, (app) => app.use(webhookRoutes(options)).use(healthRoute()))
}
