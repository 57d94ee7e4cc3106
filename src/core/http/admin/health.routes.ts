import { z } from 'zod'
import { FAILURE_CODES } from '../../domain/polling/carrier-answer.ts'
import type { Readiness } from '../../flow/admin/readiness.ts'
import { createSingleFlight } from '../../flow/shared-flight.ts'
import { type AnswerOf, instant, jsonAnswer, named, presentJson, wholeNumber } from '../server/answer-schemas.ts'
import { OPEN, ownRoute } from '../server/route.ts'
import { callRoute } from '../server/route-shapes.ts'
import { answerHealth } from '../server/server.ts'

const unavailableReason = named('UnavailableReason', () => z.enum(FAILURE_CODES))

const credentialsState = () => z.enum(['unknown', 'obtained', 'accepted', 'refused'])

const breakerState = () => z.enum(['closed', 'open', 'probing'])

/** The schema for pushes that are not trusted yet. */
export const pushProbation = () =>
  z
    .strictObject({
      since: instant(),
      trustedFrom: instant()
        .nullable()
        .describe(
          'The earliest time; at least 20 pushes must also have come. Null: no poll has brought a history since `since`, so no loss could be noticed.',
        ),
    })
    .nullable()
    .describe('Since when few pushes are lost, and when they will be trusted; null: they are trusted, too many are lost, or none come.')

const pushHealth = () => z.enum(['unknown', 'healthy', 'lossy', 'silent'])

const upstreamSchema = named('Upstream', () =>
  z.strictObject({
    version: z.string().describe('The version of the relay.'),
    credentials: credentialsState().describe(
      'unknown: the password in use was not tried yet; obtained: it brought a token that no answer has proved yet; accepted: an answer has proved the token.',
    ),
    refusal: z
      .strictObject({
        at: instant().nullable().describe('Null: another replica was refused.'),
        by: z.enum(['token_endpoint', 'status_api']).nullable().describe('Null: another replica was refused.'),
        retrySeconds: wholeNumber().describe('How long until the same password is tried again; another one is tried at once.'),
      })
      .nullable()
      .describe('The last refusal of the credentials; null: they are not refused.'),
    budget: z.strictObject({
      callsToday: wholeNumber(),
      callsPerDay: wholeNumber(),
      callsLeft: wholeNumber(),
      waiting: wholeNumber(),
      inFlight: wholeNumber(),
    }),
    breaker: z.strictObject({
      state: breakerState(),
      failures: wholeNumber().describe(
        'While calls pause: how many questions in a row had no answer, since the last start. Else: how many calls have failed. A question that is repeated with a new token counts once.',
      ),
      restSeconds: wholeNumber(),
      since: instant().nullable().describe('Since when no question has been answered, also before a restart; null: calls do not pause.'),
    }),
    pushes: z.strictObject({
      health: pushHealth(),
      silent: z.boolean(),
      lossEstimate: z.number().min(0).max(1).describe('The share of entries whose push is lost, estimated.'),
      lastNewAt: instant()
        .nullable()
        .describe(
          'When the last push came that reported something new. After a restore: the last one in the backup, until the next comes.',
        ),
      missedSinceLastNew: wholeNumber().describe('Entries since that push that only polls found. A silence does not reset the count.'),
      silentSince: instant().nullable().describe('While pushes are silent: when the last one came.'),
      silence: z
        .strictObject({
          noticedAt: instant(),
          found: wholeNumber().describe('How many entries had come without a push when the silence was noticed.'),
          lossBefore: z.number().describe('The share of pushes that were lost before, estimated.'),
        })
        .nullable()
        .describe('The evidence of the silence, as it stood when the silence was noticed.'),
      probation: pushProbation(),
      missed: z.strictObject({
        count: wholeNumber(),
        since: instant().nullable(),
        lastFoundAt: instant().nullable().describe('When the last one was counted: `poll.missedPushGrace` after a poll found it.'),
      }),
    }),
    refusedSignatures: z
      .array(z.strictObject({ address: z.string(), count: wholeNumber(), firstAt: instant(), lastAt: instant() }))
      .describe(
        'Up to 50 addresses that sent pushes whose signature did not match, the latest first, seen by this replica since its start. Anybody can send such pushes.',
      ),
    lastAnswerAt: instant().nullable(),
    lastFailure: z
      .strictObject({
        reason: unavailableReason(),
        status: wholeNumber().nullable().describe('The HTTP status of the reply; null: it is not why the call failed.'),
        at: instant(),
      })
      .nullable(),
  }),
)

export type UpstreamAnswer = AnswerOf<typeof upstreamSchema>

export const UPSTREAM_ROUTES = [
  callRoute('get', '/relay/upstream', {
    summary: 'The connection to the carrier',
    description: 'Credentials, call budget, circuit breaker, push health and missed pushes.',
    answers: { 200: ['The state of the connection', upstreamSchema] },
    answer: async ({ upstream }) => [200, await upstream.read()],
  }),
]

export interface HealthRoutePorts {
  readonly readiness: () => Promise<Readiness>
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>
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
