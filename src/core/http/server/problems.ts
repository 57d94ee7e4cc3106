import { randomUUID } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import { AppError, type ErrorCode, isStorageFailure, lacksRoom, storeUnavailable } from '../../domain/errors.ts'
import { createFailureLog, type FailureLog } from '../../flow/log-digest.ts'
import type { Log } from '../../flow/ports.ts'
import { traceOf } from './request-headers.ts'

type EdgeCode = 'no_such_address' | 'method_not_allowed' | 'headers_too_large' | 'overloaded' | 'internal'

export type ProblemCode = ErrorCode | EdgeCode

/** A refusal by the HTTP layer itself. `allow`: the `Allow` header of a `method_not_allowed`. */
export class EdgeError extends Error {
  override readonly name = 'EdgeError'
  readonly code: EdgeCode
  readonly retryAfterMs: number | undefined
  readonly allow: string | undefined

  constructor(code: EdgeCode, message: string, options: { readonly retryAfterMs?: number; readonly allow?: string } = {}) {
    super(message)
    this.code = code
    this.retryAfterMs = options.retryAfterMs
    this.allow = options.allow
  }
}

/** The code is not `not_found`, because that means an unknown parcel to clients. */
export function noSuchAddress(): EdgeError {
  return new EdgeError('no_such_address', 'The relay has nothing at this address. Addresses are exact, to the slash at the end.')
}

/** The only place that maps failures to HTTP statuses and titles. */
export const PROBLEMS: Readonly<Record<ProblemCode, readonly [status: number, title: string]>> = {
  bad_request: [400, 'The request is malformed'],
  bad_tracking_number: [400, 'This is not a tracking number'],
  bad_language: [400, 'This is not a language tag'],
  signature_invalid: [401, 'The signature does not match'],
  unauthorized: [401, 'Authentication failed'],
  forbidden: [403, 'Not allowed'],
  not_found: [404, 'Not found'],
  no_entry: [404, 'The parcel has no status yet'],
  no_such_address: [404, 'There is nothing at this address'],
  method_not_allowed: [405, 'The method is not allowed here'],
  erased: [409, 'This identifier was erased'],
  endpoint_exists: [409, 'An endpoint with this name already exists'],
  not_replayable: [409, 'This delivery cannot be replayed'],
  too_many_jobs: [409, 'Too many jobs are unfinished'],
  not_movable: [409, 'The store cannot be moved'],
  not_backed_up: [409, 'No backup can be made'],
  not_retryable: [409, 'There is nothing to retry'],
  not_skippable: [409, 'There is nothing to skip'],
  not_rotating: [409, 'No key is being replaced'],
  not_resealable: [409, 'Not every replica has the key'],
  not_reloadable: [409, 'The config cannot be reloaded'],
  not_reprocessable: [409, 'This push cannot be reprocessed'],
  not_dismissable: [409, 'This push cannot be dismissed'],
  stale_form: [409, 'This page is out of date'],
  endpoint_read_only: [409, 'This endpoint is defined in the config file'],
  feed_gone: [410, 'The feed no longer reaches back that far'],
  feed_rewound: [410, 'The feed ends before that sequence'],
  body_too_large: [413, 'The body is too large'],
  too_many_requests: [429, 'Too many requests'],
  headers_too_large: [431, 'The headers are too large'],
  internal: [500, 'Internal error'],
  storage_unavailable: [503, 'The store is unavailable'],
  upstream_unavailable: [503, 'The carrier is unavailable'],
  overloaded: [503, 'The relay is overloaded'],
}

export function statusOf(error: unknown): number {
  return error instanceof AppError || error instanceof EdgeError ? PROBLEMS[error.code][0] : PROBLEMS.internal[0]
}

/**
 * Answers failed requests with problem documents (RFC 9457), and requests that no route has answered with a 404. `areCounted`: another part
 * counts and logs refused requests, so a 503 gets no warning here.
 */
export function presentProblems(log: Log, { areCounted }: { readonly areCounted: boolean }): Middleware {
  const failures = createFailureLog({ log, clock: { monotonic: () => performance.now() } })
  return async (ctx, next) => {
    try {
      await next()
      if (ctx.status === 404 && !ctx.body) throw noSuchAddress()
    } catch (error) {
      if (ctx.req.destroyed && !ctx.req.complete) {
        log.debug({ path: ctx.path }, 'the client disconnected before its request was complete')
        ctx.respond = false
        return
      }
      // No route has to know the errors of SQLite, PostgreSQL and files.
      presentProblem(ctx, isStorageFailure(error) || lacksRoom(error) ? storeUnavailable(error) : error, { log, failures, areCounted })
    }
  }
}

interface Reporting {
  readonly log: Log
  readonly failures: FailureLog
  readonly areCounted: boolean
}

function presentProblem(ctx: Context, error: unknown, { log, failures, areCounted }: Reporting): void {
  const expected = error instanceof AppError || error instanceof EdgeError
  const code: ProblemCode = expected ? error.code : 'internal'
  const [status, title] = PROBLEMS[code]
  const instance = `urn:uuid:${randomUUID()}`
  const request = { instance, ...traceOf(ctx.req) }
  if (code === 'internal') log.error({ err: error, ...request }, 'a request failed unexpectedly')
  // No warning is needed: polling logs the start and the end of a carrier outage, and the webhook logs counts of refused pushes.
  else if (code === 'upstream_unavailable' || (areCounted && status === 503))
    log.debug({ ...request, code }, 'a request could not be served')
  // Log the cause if there is one, because it says more than the answer to the client.
  else if (status >= 500)
    failures.add('warn', { err: (expected && error.cause) || error, ...request, code }, 'a request could not be served')
  // Other refusals are the client's fault, so they are logged only for callers that trace their requests.
  else if ('traceId' in request) log.debug({ ...request, code }, 'a request was refused')

  // Drop headers that were set for a successful answer, but keep a decision to close the connection.
  for (const name of ctx.res.getHeaderNames()) if (name !== 'connection') ctx.res.removeHeader(name)
  ctx.status = status
  ctx.set('Cache-Control', 'no-store')
  if (code === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer')
  if (expected && error.retryAfterMs !== undefined) ctx.set('Retry-After', String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))))
  if (error instanceof EdgeError && error.allow !== undefined) ctx.set('Allow', error.allow)
  const facts = error instanceof AppError ? error.facts : undefined
  const detail = expected ? error.message : 'The log describes the failure, with the same `instance`.'
  ctx.body = JSON.stringify({ type: `urn:parcel-relay:error:${code}`, title, status, detail, instance, ...facts })
  ctx.type = 'application/problem+json'
  // `ctx.type` would append a charset, which this media type does not define.
  ctx.res.setHeader('Content-Type', 'application/problem+json')
}
