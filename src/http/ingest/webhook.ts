import type { Middleware } from 'koa'
import { AppError } from '../../domain/errors.ts'
import { admitSignature, type Receive } from '../../flow/ingest/receive.ts'
import type { Meter } from '../../flow/ports.ts'
import { proveConnection } from '../server/connection-slots.ts'
import { EdgeError } from '../server/errors.ts'
import type { CountFailure } from '../server/failures.ts'
import { headerValues } from '../server/header-values.ts'
import type { RawBodies } from '../server/raw-body.ts'

export interface WebhookPorts {
  /** `webhook.path`, exact. */
  readonly path: string
  readonly receive: Receive
  readonly bodies: RawBodies
  readonly countFailure: CountFailure
  readonly meter: Pick<Meter, 'pushReceived'>
}

const EMPTY = { 'Content-Length': '0' } as const

/** POST {webhook.path}: where the carrier pushes. No body parser may run before this route. */
export function receivePushes({ path, receive, bodies, countFailure, meter }: WebhookPorts): Middleware {
  const failure = async (ctx: Parameters<Middleware>[0], error: unknown) =>
    error instanceof AppError && error.code === 'signature_invalid' ? countFailure(ctx.req, error) : error

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
      meter.pushReceived('signature_invalid', null)
      await bodies.refuse(ctx.req, ctx.res)
      throw await failure(ctx, error)
    }
    let isHandedOver = false
    try {
      await bodies.use(ctx.req, ctx.res, (body) => {
        isHandedOver = true
        return receive({ body, signatures, contentEncoding: ctx.req.headers['content-encoding'] ?? null })
      })
    } catch (error) {
      // `receive` counts its own failures, so only failures of reading the body are counted here.
      const isAuthentic = isHandedOver && !(error instanceof AppError && error.code === 'signature_invalid')
      if (isAuthentic) proveConnection(ctx.req)
      if (!isHandedOver && (error instanceof AppError || error instanceof EdgeError)) meter.pushReceived(error.code, null)
      throw await failure(ctx, error)
    }
    proveConnection(ctx.req)
    // The push is on disk, so the answer is an empty 200, even if it was quarantined.
    ctx.respond = false
    ctx.res.writeHead(200, EMPTY)
    ctx.res.end()
  }
}
