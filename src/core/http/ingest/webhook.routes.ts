import type { IncomingMessage } from 'node:http'
import type { Middleware } from 'koa'
import { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import type { RefusalSamples } from '../../domain/ingest/refused-spells.ts'
import { admitSignature, type Receive } from '../../flow/ingest/receive.ts'
import type { Meter } from '../../flow/ports.ts'
import { named } from '../server/answer-schemas.ts'
import type { CountFailure } from '../server/authorize.ts'
import { proveConnection } from '../server/connection-slots.ts'
import { EdgeError } from '../server/problems.ts'
import type { RawBodies } from '../server/raw-body.ts'
import { type AddressOf, headerValues } from '../server/request-headers.ts'
import { OPEN, ownRoute } from '../server/route.ts'

export interface WebhookPorts {
  /** `webhook.path`, which must match exactly. */
  readonly path: string
  readonly receive: Receive
  readonly bodies: RawBodies
  readonly countFailure: CountFailure
  readonly meter: Pick<Meter, 'pushReceived'>
  /** Examines some of the pushes that are refused for the form of their signature. */
  readonly refusals: Pick<RefusalSamples, 'isDue' | 'take'>
  readonly addressOf: AddressOf
}

export interface MisdirectedPorts {
  readonly misdirected: (request: { readonly target: string; readonly isSigned: boolean }) => void
}

const EMPTY = { 'Content-Length': '0' } as const

/** Reports each POST to a path without a route, before it is answered with 404. */
export function noteMisdirected({ misdirected }: MisdirectedPorts): Middleware {
  return async (ctx, next) => {
    if (ctx.req.method === 'POST')
      misdirected({ target: ctx.req.url ?? '/', isSigned: headerValues(ctx.req, 'x-service-hmac-sha256').length > 0 })
    await next()
  }
}

/** Serves POST {webhook.path}, where the carrier pushes. No body parser may run before this route. */
export function receivePushes({ path, receive, bodies, countFailure, meter, refusals, addressOf }: WebhookPorts): Middleware {
  const failure = async (ctx: Parameters<Middleware>[0], error: unknown) =>
    error instanceof AppError && error.code === 'signature_invalid' ? countFailure(ctx.req, error) : error

  const originOf = (req: IncomingMessage) => ({ address: addressOf(req), header: (name: string) => headerValues(req, name)[0] ?? null })

  return async (ctx, next) => {
    // Comparing the raw URL first avoids parsing it.
    if (ctx.req.url !== path && ctx.path !== path) {
      await next()
      return
    }
    if (ctx.req.method !== 'POST') throw new EdgeError('method_not_allowed', 'Allowed here: POST.', { allow: 'POST' })
    const signatures = headerValues(ctx.req, 'x-service-hmac-sha256')
    try {
      admitSignature(signatures)
    } catch (error) {
      const body = await bodies.refuse(ctx.req, ctx.res, refusals.isDue())
      // Do not await anything between this count and the count of the sender's address in `failure`. Otherwise a log line could show only one.
      meter.pushReceived('signature_invalid', null)
      if (refusals.isDue()) refusals.take({ ...originOf(ctx.req), body, signatures })
      throw await failure(ctx, error)
    }
    let isHandedOver = false
    try {
      await bodies.use(ctx.req, ctx.res, (body) => {
        isHandedOver = true
        const origin = () => originOf(ctx.req)
        return receive({ body, signatures, contentEncoding: ctx.req.headers['content-encoding'] ?? null, origin })
      })
    } catch (error) {
      // `receive` counts its own failures, so only failures of reading the body are counted here.
      const isAuthentic = isHandedOver && !(error instanceof AppError && error.code === 'signature_invalid')
      if (isAuthentic) proveConnection(ctx.req)
      if (!isHandedOver && (error instanceof AppError || error instanceof EdgeError)) meter.pushReceived(error.code, null)
      throw await failure(ctx, error)
    }
    proveConnection(ctx.req)
    // The push is on disk, so the answer is an empty 200, even to a push that was quarantined.
    ctx.respond = false
    ctx.res.writeHead(200, EMPTY)
    ctx.res.end()
  }
}

const texts = () => z.array(z.looseObject({ value: z.string(), languageCode: z.string() }))

/** An event, as the carrier pushes it and as endpoints receive it. It is a loose object, because the carrier may add members. */
export const eventSchema = named('Event', () =>
  z.looseObject({
    status: z.string(),
    detailedStatus: z.string(),
    eventTime: z.string(),
    location: z.string().nullable().optional(),
    trackingIds: z.array(z.string()),
    distributionType: z.string().optional(),
    displayToConsumer: z.boolean().optional(),
    consumerDescription: texts().optional(),
    detailedStatusDescription: texts().optional(),
  }),
)

export const EXAMPLE_EVENT = {
  status: 'TerminalArrived',
  detailedStatus: 'ArrivedT2',
  eventTime: '2026-03-01T10:00:00.250Z',
  location: 'Lund',
  trackingIds: ['370000000000000001'],
  distributionType: 'Mailbox',
  displayToConsumer: true,
  consumerDescription: [{ value: 'Your parcel is at the terminal', languageCode: 'en' }],
  detailedStatusDescription: [{ value: 'Arrived at the terminal', languageCode: 'en' }],
}

/** The address to which the carrier pushes. The public listener serves it before any router, and no schema checks a push. */
export const WEBHOOK_ROUTES = [
  ownRoute({
    ...OPEN,
    method: 'post',
    path: '/webhooks/status',
    listener: 'public',
    summary: 'Take a push of the carrier',
    description:
      'The path is the setting `webhook.path`. Exactly one `x-service-hmac-sha256` header: the HMAC-SHA256 of the exact body, in Base64, with one of `webhook.sharedKeys`. After any answer but 200, send it again; a duplicate does no harm.',
    body: { bytesMax: null, content: { 'application/json': { schema: eventSchema, example: EXAMPLE_EVENT } } },
    answers: () => ({ 200: { description: 'The push is on disk: recorded, a duplicate, expired or quarantined' } }),
    problems: ['signature_invalid', 'body_too_large', 'too_many_requests', 'overloaded', 'storage_unavailable'],
    handle: receivePushes,
  }),
]
