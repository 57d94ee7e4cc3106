/** The codes of all expected failures. Codes never change. `core/http/server/errors` must give each code a status, or it does not compile. */
export type ErrorCode =
  | 'bad_request'
  | 'bad_tracking_number'
  | 'bad_language'
  | 'signature_invalid'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'no_entry'
  | 'erased'
  | 'endpoint_exists'
  | 'endpoint_read_only'
  | 'not_replayable'
  | 'not_reprocessable'
  | 'not_dismissable'
  | 'too_many_jobs'
  | 'not_movable'
  | 'not_backed_up'
  | 'not_retryable'
  | 'not_skippable'
  | 'not_rotating'
  | 'not_resealable'
  | 'not_reloadable'
  | 'stale_form'
  | 'feed_gone'
  | 'feed_rewound'
  | 'body_too_large'
  | 'too_many_requests'
  | 'storage_unavailable'
  | 'upstream_unavailable'

const SYSTEM_CODE = /^[A-Z0-9_]{1,64}$/

/**
 * Returns the code that the operating system or a library gave an error, such as `ECONNREFUSED`; null: the error has no such code. A code
 * is safe to log: unlike a message, it never quotes data.
 */
export function systemCode(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null
  return typeof code === 'string' && SYSTEM_CODE.test(code) ? code : null
}

const NO_ROOM: ReadonlySet<string | null> = new Set(['SQLITE_FULL', 'ENOSPC', 'EDQUOT'])

/** Whether something could not be written because the disk is full. */
export function lacksRoom(error: unknown): boolean {
  return NO_ROOM.has(systemCode(error))
}

/** SQLite's codes for failures of the store itself. Its other codes are about a single statement. */
const STORAGE_FAILURE = /^SQLITE_(?:FULL|IOERR|BUSY|LOCKED|CORRUPT|READONLY|CANTOPEN|NOTADB|PROTOCOL|NOMEM)(?:_|$)/

/**
 * The store cannot be reached or has failed. A database engine throws this if `isStorageFailure` would not recognize the original error.
 * `code`: by default the code of the cause.
 */
export class StorageFailure extends Error {
  override readonly name = 'StorageFailure'
  readonly code: string | null

  constructor(message: string, cause?: unknown, code = systemCode(cause)) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** Whether an error means that the store has failed: it is full, unreadable, locked, damaged, read-only or missing. */
export function isStorageFailure(error: unknown): boolean {
  return error instanceof StorageFailure || STORAGE_FAILURE.test(systemCode(error) ?? '')
}

export type ErrorFacts = Readonly<Record<string, string | number | readonly object[] | readonly string[]>>

/**
 * An expected failure. `message` is safe to show. `retryAfterMs`: how long to wait before a retry. `facts`: details that an answer contains
 * besides the message, for programs.
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

/** What everybody is told whose push or order cannot be stored, because the disk of the store is full. */
export const NO_ROOM_TEXT =
  'The disk of the store is full, or nearly full. Make room on it, then try again: "parcel-relay status" says how much is missing.'

/** Whether the store cannot read or write now, whether the failure comes from it or is already told as a refusal. */
export function isStoreUnavailable(error: unknown): boolean {
  return isStorageFailure(error) || (error instanceof AppError && error.code === 'storage_unavailable')
}

const STORE_RETRY_AFTER_MS = 5000

/** The refusal of what the store cannot read or write now, with the reason if it is the disk. */
export function storeUnavailable(cause: unknown, retryAfterMs = STORE_RETRY_AFTER_MS): AppError {
  return new AppError('storage_unavailable', lacksRoom(cause) ? NO_ROOM_TEXT : 'The store is not available now. Try again later.', {
    cause,
    retryAfterMs,
  })
}
