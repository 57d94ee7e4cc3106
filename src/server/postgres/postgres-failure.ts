import { StorageFailure, systemCode } from '../../core/domain/errors.ts'
import { knownReason, reasonOfCode, tlsFaultOf, tlsMeaning, tlsRemedy } from '../../core/domain/system-reason.ts'

/** The driver's messages about a lost or unusable connection. These errors have no code. */
const LOST = /^(?:Connection terminated|Client (?:was closed|has encountered a connection error))/

/** Describes a failure of an open database. An error of the driver without a code gets the matching code of the operating system. */
export function runningFailure(error: unknown): StorageFailure {
  const message = error instanceof Error ? error.message : ''
  const code = systemCode(error) ?? driverCode(message)
  return new StorageFailure(describe(code ?? ''), error, code)
}

/** A move shows its error to operators. So this replaces the driver's message about a lost connection, which only programmers understand. */
export function movingFailure(error: unknown): unknown {
  return error instanceof Error && LOST.test(error.message) ? runningFailure(error) : error
}

/** The codes of errors after which the server may be back soon: it is starting, stopping, out of connections or out of reach. */
const AWAY: ReadonlySet<string> = new Set(
  ['57P01', '57P02', '57P03', '53300', '08000', '08001', '08003', '08004', '08006'].concat([
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'EAI_AGAIN',
  ]),
)
const CAUSES_MAX = 5

/** Whether an error, or one of its causes, shows that the server cannot be reached now. */
export function isServerAway(error: unknown): boolean {
  let cause = error
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    if (AWAY.has(systemCode(cause) ?? driverCode(cause.message) ?? '')) return true
    cause = cause.cause
  }
  return false
}

function driverCode(message: string): string | null {
  if (LOST.test(message)) return 'ECONNRESET'
  return /timeout/i.test(message) ? 'ETIMEDOUT' : null
}

function describe(code: string): string {
  const fault = tlsFaultOf(code)
  if (fault !== null) return tlsMeaning(fault, 'the server of the database')
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'the connection to the database was lost'
  if (/^E[A-Z]+$/.test(code)) return 'the database cannot be reached'
  return knownReason(code) ?? 'the database failed'
}

/** Describes why a database could not be opened, and what to do. Shows no password. Returns an error with such a message unchanged. */
export function openingFailure(name: string, error: unknown): unknown {
  const message = error instanceof Error ? error.message : String(error)
  if (message.startsWith('store: ')) return error
  return new Error(`store: ${explain(name, systemCode(error) ?? '', message)}`, { cause: error })
}

function explain(name: string, code: string, message: string): string {
  if (code === '28P01') return `${name} does not accept the user's password. Look at the user and the password in \`store\`.`
  if (/password must be a (?:non-empty )?string/.test(message))
    return `${name} asks for a password, and \`store\` names none. Add it to the address.`
  if (code === '28000')
    return `${name} does not let the user in (${message}). Look at the user in \`store\` and at the server's pg_hba.conf.`
  if (code === '42501') return `the user may not use ${name} (${message}). Allow it to: GRANT CONNECT ON DATABASE ... TO ...`
  if (code === '3D000')
    return `there is no such database at ${name} (${message}). Make it (CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0), or name another in \`store\`.`
  if (code === '53300')
    return `${name} has no connection left (${message}). Raise the server's max_connections, or put a pooler such as pgbouncer before it.`
  if (code === '57P03') return `the server of ${name} is starting or stopping (${message}). Start the relay again when it is up.`
  const fault = tlsFaultOf(code)
  if (fault !== null)
    return `no encrypted connection to ${name} can be made: ${tlsMeaning(fault, 'the server')}. ${tlsRemedy(fault, 'sslrootcert')}`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the host of ${name} is not known here. Look at the host in \`store\`.`
  if (/^E[A-Z]+$/.test(code) || /timeout/i.test(message))
    return `no PostgreSQL answers at ${name} (${code === '' ? message : reasonOfCode(code)}). Look at the host and the port in \`store\`, and whether the server runs and no firewall blocks it.`
  if (/SSL/.test(message))
    return `no encrypted connection to ${name} can be made (${message}). Look at \`sslmode\` in \`store\` and at the server's certificate.`
  return `${name} could not be opened (${knownReason(code) ?? message}).`
}

/**
 * The codes of a serialization failure, a deadlock, a duplicate key and a division by zero, all caused by another transaction. A duplicate
 * key: the other transaction was the first to insert an identifier, a content or a push. The relay's statements divide by zero on purpose if
 * another transaction has changed what this transaction relied on.
 */
const CONFLICTS = ['40001', '40P01', '23505', '22012']

/** Whether another transaction made this one fail, so that this one may succeed if it begins again. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(systemCode(error) ?? '')
}

/** Makes an error for which `isConflict` is true. A transaction that notices a conflict itself throws it, to begin again. */
export function metAnother(message: string): Error {
  return Object.assign(new Error(message), { code: '40001' })
}

/** Only this conflict can also be caused by a wrong request. */
const DUPLICATE_KEY = '23505'

/**
 * The most attempts of a transaction. With their pauses they take about three seconds. For a duplicate key, which may never go away, they
 * take about one second.
 */
const TRIES_MAX = 60
const TRIES_FOR_KEY_MAX = 20

/** Whether to give up after this attempt, counted from 1. */
export function isEndless(error: unknown, attempt: number): boolean {
  return isConflict(error) && attempt >= (systemCode(error) === DUPLICATE_KEY ? TRIES_FOR_KEY_MAX : TRIES_MAX)
}

/**
 * Makes the error of a transaction that met a conflict at every attempt. A duplicate key at every attempt is the fault of the request.
 * Otherwise the store is too busy.
 */
export function endlessConflict(cause: unknown): Error {
  return systemCode(cause) === DUPLICATE_KEY
    ? new Error('a row with the same key existed at every attempt', { cause })
    : new StorageFailure('the database is too busy: every attempt was in conflict with another transaction', cause)
}
