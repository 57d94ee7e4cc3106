import { randomUUID } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import { AppError, type ErrorCode, isStorageFailure } from '../../domain/errors.ts'
import type { Log } from '../../flow/ports.ts'

/** Failures that only exist at this edge. */
type EdgeCode = 'method_not_allowed' | 'headers_too_large' | 'overloaded' | 'internal'

type ProblemCode = ErrorCode | EdgeCode

/** What the edge itself refuses; `allow` goes with `method_not_allowed`. */
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

/** The only place where a failure becomes a status. */
const PROBLEMS: Readonly<Record<ProblemCode, readonly [status: number, title: string]>> = {
  bad_request: [400, 'The request is malformed'],
  bad_tracking_number: [400, 'This is no tracking number'],
  bad_language: [400, 'This is no language'],
  signature_invalid: [401, 'The signature does not match'],
  unauthorized: [401, 'Who asks is not known'],
  forbidden: [403, 'Not allowed'],
  not_found: [404, 'Not found'],
  method_not_allowed: [405, 'The method is not allowed here'],
  endpoint_exists: [409, 'An endpoint has this name already'],
  not_replayable: [409, 'This delivery cannot be replayed'],
  too_many_jobs: [409, 'Too many jobs have not ended'],
  not_retryable: [409, 'Nothing can be retried here now'],
  not_rotating: [409, 'No key is being replaced'],
  not_reprocessable: [409, 'This push cannot be processed again'],
  endpoint_read_only: [409, 'This endpoint is defined in the config file'],
  feed_gone: [410, 'The feed no longer reaches back that far'],
  feed_rewound: [410, 'The feed does not reach that far'],
  body_too_large: [413, 'The body is too large'],
  too_many_requests: [429, 'Too many failures'],
  headers_too_large: [431, 'The headers are too large'],
  internal: [500, 'Something went wrong here'],
  storage_unavailable: [503, 'The store is unavailable'],
  upstream_unavailable: [503, 'The carrier is unavailable'],
  overloaded: [503, 'The relay is overloaded'],
}

const STORAGE_RETRY_AFTER_MS = 5000

/** The end of every request that fails: turns what is thrown into a problem (RFC 9457), and what nobody answered into a 404. */
export function presentProblems(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next()
      if (ctx.status === 404 && !ctx.body) throw new AppError('not_found', 'There is nothing at this address.')
    } catch (error) {
      if (ctx.req.destroyed && !ctx.req.complete) {
        log.debug({ path: ctx.path }, 'the client left before its request was complete')
        ctx.respond = false
        return
      }
      presentProblem(ctx, isStorageFailure(error) ? storageUnavailable(error) : error, log)
    }
  }
}

/** Of whatever a route reads or writes: none has to know how a store fails. */
function storageUnavailable(cause: unknown): AppError {
  return new AppError('storage_unavailable', 'The store cannot do this now. Ask again later.', {
    cause,
    retryAfterMs: STORAGE_RETRY_AFTER_MS,
  })
}

function presentProblem(ctx: Context, error: unknown, log: Log): void {
  const expected = error instanceof AppError || error instanceof EdgeError
  const code: ProblemCode = expected ? error.code : 'internal'
  const [status, title] = PROBLEMS[code]
  const instance = `urn:uuid:${randomUUID()}`
  if (code === 'internal') log.error({ err: error, instance }, 'a request failed unexpectedly')
  // That the carrier cannot be asked is logged when that begins and ends, not for each who asks meanwhile.
  else if (code === 'upstream_unavailable') log.debug({ instance, code }, 'a request could not be served')
  else if (status >= 500) log.warn({ err: error, instance, code }, 'a request could not be served')

  // What was set for the answer that did not come is gone, but for the decision to close the connection.
  for (const name of ctx.res.getHeaderNames()) if (name !== 'connection') ctx.res.removeHeader(name)
  ctx.status = status
  ctx.set('Cache-Control', 'no-store')
  if (code === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer')
  if (expected && error.retryAfterMs !== undefined) ctx.set('Retry-After', String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))))
  if (error instanceof EdgeError && error.allow !== undefined) ctx.set('Allow', error.allow)
  const facts = error instanceof AppError ? error.facts : undefined
  const detail = expected ? error.message : 'The failure was logged under the id of this request.'
  ctx.body = JSON.stringify({ type: `urn:parcel-relay:error:${code}`, title, status, detail, instance, ...facts })
  ctx.type = 'application/problem+json'
  // Charset is no parameter of this media type.
  ctx.res.setHeader('Content-Type', 'application/problem+json')
}
