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
  | 'not_replayable'
  | 'feed_gone'
  | 'body_too_large'
  | 'too_many_requests'
  | 'storage_unavailable'
  | 'upstream_unavailable'

export type ErrorFacts = Readonly<Record<string, string | number | readonly object[]>>

/**
 * A failure that is somebody's to know: `message` is safe to show, `retryAfterMs` says when asking again may help, `facts` are told beside
 * the message for programs to read.
 */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly retryAfterMs: number | undefined
  readonly facts: ErrorFacts | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly retryAfterMs?: number; readonly facts?: ErrorFacts } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryAfterMs = options.retryAfterMs
    this.facts = options.facts
  }
}
