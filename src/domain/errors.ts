/**
 * Every expected failure of the product, by stable code. `http/errors` gives each its status: adding a code here makes the compiler
 * demand one there.
 */
export type ErrorCode =
  | 'bad_request'
  | 'bad_tracking_number'
  | 'bad_language'
  | 'signature_invalid'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'endpoint_exists'
  | 'endpoint_read_only'
  | 'body_too_large'
  | 'too_many_requests'
  | 'storage_unavailable'
  | 'upstream_unavailable'

/** A failure that is somebody's to know: `message` is safe to show, `retryAfterMs` says when asking again may help. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly retryAfterMs: number | undefined

  constructor(code: ErrorCode, message: string, options: { readonly cause?: unknown; readonly retryAfterMs?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryAfterMs = options.retryAfterMs
  }
}
