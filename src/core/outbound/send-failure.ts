import { errors } from 'undici'
import type { FailureReason } from '../domain/delivery/delivery.ts'
import { systemCode } from '../domain/errors.ts'
import { tlsFaultOf } from '../domain/system-reason.ts'
import { EgressRefused } from './guarded-connector.ts'

/** Why an attempt got no answer. */
export interface SendFailure {
  readonly reason: FailureReason
  /** A code, never a message, because messages quote what was sent and received. */
  readonly detail: string
}

export const LENGTH_UNCLEAR = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'

const BY_CODE: ReadonlyMap<string, FailureReason> = new Map([
  ['ENOTFOUND', 'dns'],
  ['ECONNREFUSED', 'connection_refused'],
  ['EHOSTUNREACH', 'connection_refused'],
  ['ENETUNREACH', 'connection_refused'],
  ['ECONNRESET', 'reset'],
  ['EPIPE', 'reset'],
  ['UND_ERR_SOCKET', 'reset'],
  ['UND_ERR_HEADERS_OVERFLOW', 'bad_response'],
  // The answer names its length twice, or beside `Transfer-Encoding`, so its end is not certain (RFC 9112, 6.3).
  [LENGTH_UNCLEAR, 'bad_response'],
  ['ETIMEDOUT', 'timeout'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
])

/** Undici's error codes for a proxy that opened no tunnel, refused our credentials, or could not be reached. */
const BY_PROXY: ReadonlySet<string> = new Set(['UND_ERR_ABORTED', 'UND_ERR_PRX_TLS', 'UND_ERR_PRX_CONN', 'UND_ERR_INVALID_ARG'])

/**
 * Says why a request through a proxy got no answer. The relay looks up only the proxy's name and connects only to the proxy, so a failed lookup
 * or a refused connection means that the proxy was not reached.
 */
export function proxiedFailureOf(error: unknown): SendFailure {
  const failure = failureOf(error)
  const isOfProxy = BY_PROXY.has(failure.detail) || failure.reason === 'dns' || failure.reason === 'connection_refused'
  return isOfProxy ? { ...failure, reason: 'proxy' } : failure
}

/** Says why a request got no answer. `error`: the error that ended the request before its deadline. */
export function failureOf(error: unknown): SendFailure {
  if (error instanceof EgressRefused) return { reason: 'forbidden', detail: error.reason }
  if (error instanceof errors.HTTPParserError) return { reason: 'bad_response', detail: 'NO_HTTP' }
  const code = systemCode(error) ?? 'UNKNOWN'
  return { reason: reasonOf(code), detail: code }
}

/** Whether the other side closed or reset the connection. */
export function isConnectionLost(error: unknown): boolean {
  return reasonOf(systemCode(error) ?? '') === 'reset'
}

function reasonOf(code: string): FailureReason {
  if (code.startsWith('EAI_')) return 'dns'
  return tlsFaultOf(code) ?? BY_CODE.get(code) ?? 'network'
}
