import { type DestinationStream, pino, stdTimeFunctions } from 'pino'
import { isSecret, REDACTED } from '../config/secret.ts'
import { AppError, isStorageFailure, systemCode } from '../domain/errors.ts'
import { knownReason } from '../domain/system-reason.ts'
import type { Log } from '../flow/ports.ts'

export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Default: standard output. */
  readonly destination?: DestinationStream
}

/**
 * Creates a log of JSON lines, with the level as text and the time as ISO 8601. For an error it writes only the type, message, stack, code and
 * cause, because libraries attach requests and configs to errors. For bytes it writes only their number. It masks every member that is named
 * like a secret, at any depth. Pino's own redaction works only on paths of fixed depth.
 */
export function createLog({ level, destination = standardOutput() }: LogOptions): Log {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: joinCauses },
    },
    destination,
  )
  const write = (name: 'debug' | 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    if (logger.isLevelEnabled(name)) logger[name](safeFields(fields), safeText(message))
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** A log line as plain data, to send it from one thread to another. It contains no secrets. */
export interface LogLine {
  readonly level: keyof Log
  readonly fields: object
  readonly message: string
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** Creates a log that passes its lines to `send`, so that another thread writes them. `least`: the lowest level that is passed on. */
export function createForwardedLog(least: keyof Log, send: (line: LogLine) => void): Log {
  const write = (level: keyof Log) =>
    LEVELS.indexOf(level) < LEVELS.indexOf(least)
      ? () => {}
      : (fields: object, message: string) => send({ level, fields: safeFields(fields), message: safeText(message) })
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** Appends the messages of an error's causes to its message. pino does this only for an instance of `Error`, and `copy` is a plain object. */
function joinCauses(copy: unknown): unknown {
  if (typeof copy !== 'object' || copy === null || !('type' in copy && 'message' in copy)) return copy
  // Start with an empty stack. Otherwise a copy without a stack would show the stack of the error that is created here.
  const error = Object.assign(new Error(), { stack: '' }, copy)
  const joined = pino.stdSerializers.err(error)
  return Object.assign(joined, { type: copy.type, stack: joined.stack === '' ? undefined : joined.stack.trimStart() })
}

/** Opens standard output. If writing fails (EPIPE, a full disk), lines are lost, but the process goes on. */
function standardOutput(): DestinationStream {
  const stream = pino.destination({ fd: 1, sync: true, maxLength: 1_048_576 })
  stream.on('error', () => {})
  return stream
}

const DEPTH_MAX = 8
const MEMBERS_MAX = 100
const TEXT_MAX = 4_000
const SECRET_NAME = /(?:password|passwordhash|passwd|token|authorization|sharedkey|atrestkey|secret|xservicehmacsha256|cookie)s?$/
const RESERVED = new Set(['level', 'time', 'msg'])

/** Copies the fields without secrets. If pino uses the name of a field, `_` is appended to the name. A bare error becomes the field `error`. */
function safeFields(fields: object): object {
  const safe = fields instanceof Error ? { error: safeError(fields, 0, new Set()) } : safeValue(fields, 0, new Set())
  if (typeof safe !== 'object' || safe === null || Array.isArray(safe)) return { fields: safe }
  return Object.fromEntries(Object.entries(safe).map(([name, value]) => [RESERVED.has(name) ? `${name}_` : name, value]))
}

/** Copies a value without secrets. `above`: the objects that contain the value, by which cycles are found. */
function safeValue(value: unknown, depth: number, above: ReadonlySet<object>): unknown {
  if (typeof value === 'string') return safeText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return `[${typeof value}]`
  if (typeof value !== 'object' || value === null) return value
  if (isSecret(value)) return REDACTED
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (above.has(value)) return '[circular]'
  if (depth >= DEPTH_MAX) return '[deep]'
  if (value instanceof Error) return safeError(value, depth, above)
  const within = new Set([...above, value])
  if (value instanceof Map) return safeValue(Object.fromEntries(value), depth, within)
  if (value instanceof Set) return safeValue([...value], depth, within)
  if (Array.isArray(value)) return safeItems(value, depth, within)
  return safeMembers(value, depth, within)
}

const HEADER_NAME = /^[\w-]+$/

/** Copies a list. It may be raw headers, where a name precedes each value, so the item after the name of a secret header is masked. */
function safeItems(items: readonly unknown[], depth: number, within: ReadonlySet<object>): readonly unknown[] {
  return items.slice(0, MEMBERS_MAX).map((item, index) => {
    const before = items[index - 1]
    return typeof before === 'string' && HEADER_NAME.test(before) && isSecretName(before) ? REDACTED : safeValue(item, depth + 1, within)
  })
}

function safeMembers(value: object, depth: number, within: ReadonlySet<object>): object {
  const safe: [string, unknown][] = []
  for (const name of Object.keys(value).slice(0, MEMBERS_MAX)) {
    safe.push([name, isSecretName(name) ? REDACTED : safeValue(memberOf(value, name), depth + 1, within)])
  }
  return Object.fromEntries(safe)
}

function safeError(error: Error, depth: number, above: ReadonlySet<object>): object {
  const [code, cause, stack] = ['code', 'cause', 'stack'].map((name) =>
    name === 'stack' && isExpected(error) ? undefined : memberOf(error, name),
  )
  const within = new Set([...above, error])
  return {
    type: safeText(String(error.name)),
    message: safeText(String(error.message)),
    ...(typeof stack === 'string' ? { stack: safeText(stack) } : {}),
    ...(typeof code === 'string' || typeof code === 'number' ? { code, ...reasonBeside(code) } : {}),
    // A cause can be any value. Only errors and texts are safe to log.
    ...(cause instanceof Error
      ? { cause: safeValue(cause, depth + 1, within) }
      : typeof cause === 'string'
        ? { cause: safeText(cause) }
        : {}),
  }
}

/** Returns the field `reason`, which says in words what a code of the operating system means. Returns no field for other codes. */
function reasonBeside(code: string | number): { readonly reason?: string } {
  const reason = typeof code === 'string' ? knownReason(code) : null
  return reason === null ? {} : { reason }
}

/** Whether an error is logged without its stack, because it is no bug: it was expected, or comes from the store, the disk or the network. */
function isExpected(error: Error): boolean {
  // A message between threads puts the code into the text (`asError`).
  const code = systemCode(error) ?? /^([A-Z0-9_]+): /.exec(error.message)?.[1] ?? ''
  return (
    error instanceof AppError ||
    isStorageFailure(error) ||
    isStorageFailure(Object.assign(new Error(), { code })) ||
    SYSTEM_TROUBLE.has(code)
  )
}

const SYSTEM_TROUBLE: ReadonlySet<string> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EIO',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
])

function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name.toLowerCase().replace(/[^a-z0-9]/g, ''))
}

/** Reads a member. A getter may throw, but logging must not. */
function memberOf(value: object, name: string): unknown {
  try {
    return Reflect.get(value, name)
  } catch {
    return '[unreadable]'
  }
}

/** Masks credentials in text, such as in URLs and in quoted headers, and cuts long text off. */
function safeText(text: string): string {
  const safe = text
    .slice(0, TEXT_MAX * 2)
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi, `$1${REDACTED}@`)
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}/gi, `$1 ${REDACTED}`)
    .replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, REDACTED)
  return safe.length > TEXT_MAX ? `${safe.slice(0, TEXT_MAX)}…` : safe
}
