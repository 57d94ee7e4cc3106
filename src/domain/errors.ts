/**
 * Every expected failure of the product, by stable code. `http/server/errors` gives each its status: adding a code here makes the compiler
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
  | 'not_reprocessable'
  | 'too_many_jobs'
  | 'not_retryable'
  | 'not_rotating'
  | 'feed_gone'
  | 'feed_rewound'
  | 'body_too_large'
  | 'too_many_requests'
  | 'storage_unavailable'
  | 'upstream_unavailable'

const SYSTEM_CODE = /^[A-Z0-9_]{1,64}$/

/**
 * The code that the system or a library gave an error, such as `ECONNREFUSED`; null: it has none of that form. It quotes nothing of what was
 * sent, received or read, as messages do.
 */
export function systemCode(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null
  return typeof code === 'string' && SYSTEM_CODE.test(code) ? code : null
}

/** What SQLite says when it cannot now, whatever it is asked; its other codes speak of what it was asked. */
const STORAGE_FAILURE = /^SQLITE_(?:FULL|IOERR|BUSY|LOCKED|CORRUPT|READONLY|CANTOPEN|NOTADB|PROTOCOL|NOMEM)(?:_|$)/

/** Whether an error is the store's own trouble: full, unreadable, locked, damaged or read-only. */
export function isStorageFailure(error: unknown): boolean {
  return STORAGE_FAILURE.test(systemCode(error) ?? '')
}

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
