import { z } from 'zod'
import type { Readiness } from '../../flow/admin/readiness.ts'
import { createSingleFlight } from '../../flow/shared-flight.ts'
import { breakerState, credentialsState, pushHealth, unavailableReason } from '../polling/upstream.routes.ts'
import { instant, jsonAnswer, wholeNumber } from '../server/answer-schemas.ts'
import { answerHealth } from '../server/listener.ts'
import { presentJson } from '../server/present.ts'
import { OPEN, ownRoute } from '../server/route.ts'

interface MetricsText {
  readonly contentType: string
  readonly body: string
}

export interface HealthRoutePorts {
  readonly readiness: () => Promise<Readiness>
  readonly metrics: () => Promise<MetricsText>
}

const readinessAs = (status: 'ready' | 'not_ready') =>
  z.strictObject({
    status: z.literal(status),
    reasons: z.array(z.string()).describe('Why the relay is not ready. Each reason begins with a code and a colon.'),
    endpointKeys: z
      .strictObject({ state: z.literal('lost'), where: z.string(), endpoints: wholeNumber() })
      .optional()
      .describe('Endpoints whose key cannot be decrypted, and the file or setting to restore.'),
    upstream: z.strictObject({
      state: z.union([z.enum(['ok', 'upstream_auth']), unavailableReason()]),
      credentials: credentialsState(),
      breaker: breakerState(),
      lastAnswerAt: instant().nullable(),
      lastFailure: unavailableReason().nullable(),
      lastFailureAt: instant().nullable(),
      pushes: pushHealth(),
      misdirected: z
        .array(z.strictObject({ path: z.string(), count: wholeNumber(), lastAt: instant() }))
        .describe(
          'Paths other than `webhook.path` to which something with the header of a signature was posted and answered with 404, the most recent first, seen by this replica since its start.',
        ),
    }),
  })

/** Whether the relay works, for probes and monitors. */
export const HEALTH_ROUTES = [
  ownRoute({
    ...OPEN,
    method: 'get',
    path: '/healthz',
    listener: 'both',
    summary: 'Is the process alive',
    description: 'Touches neither the store nor the carrier.',
    answers: () => ({ 200: jsonAnswer('It is', z.strictObject({ status: z.literal('ok') })) }),
    handle: () => answerHealth,
  }),
  ownRoute({
    ...OPEN,
    method: 'get',
    path: '/readyz',
    summary: 'Can the relay take pushes and answer requests',
    description:
      'The body also tells of trouble with the carrier, but that is no reason for a 503: a relay whose carrier is down still serves.',
    answers: () => ({
      200: jsonAnswer('The relay can', readinessAs('ready')),
      503: jsonAnswer('The relay cannot, for these reasons', readinessAs('not_ready')),
    }),
    handle:
      ({ readiness }: HealthRoutePorts) =>
      async (ctx) => {
        const { ready, reasons, notes } = await readiness()
        presentJson(ctx, ready ? 200 : 503, { status: ready ? 'ready' : 'not_ready', reasons, ...notes })
      },
  }),
  ownRoute({
    ...OPEN,
    method: 'get',
    path: '/metrics',
    summary: 'Metrics for Prometheus',
    answers: () => ({ 200: { description: 'The text format of Prometheus', content: { 'text/plain': z.string() } } }),
    handle: ({ metrics }: HealthRoutePorts) => {
      const share = createSingleFlight<{ readonly contentType: string; readonly body: Buffer }>()
      return async (ctx) => {
        // Rendering takes milliseconds, so requests at the same time share one body.
        const { contentType, body } = await share('metrics', async () => {
          const text = await metrics()
          return { ...text, body: Buffer.from(text.body) }
        })
        ctx.body = body
        ctx.set('Content-Type', contentType)
        ctx.set('Cache-Control', 'no-store')
      }
    },
  }),
]
