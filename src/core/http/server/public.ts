import type { RequestListener } from 'node:http'
import { healthRoute } from '../admin/health.ts'
import { type MisdirectedPorts, noteMisdirected, receivePushes, type WebhookPorts } from '../ingest/webhook.ts'
import { type AppOptions, createListener } from './listener.ts'

export interface PublicOptions extends AppOptions, WebhookPorts, MisdirectedPorts {}

/** Creates the listener for the carrier. It serves the webhook and `/healthz`, nothing else. */
export function createPublicListener(options: PublicOptions): RequestListener {
  return createListener({ ...options, areRefusalsCounted: true }, (app) =>
    app.use(receivePushes(options)).use(healthRoute()).use(noteMisdirected(options)),
  )
}
