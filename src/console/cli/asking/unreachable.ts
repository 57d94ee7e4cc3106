import { systemCode } from '../../../core/domain/errors.ts'
import { tlsFaultOf, tlsMeaning, tlsRemedy } from '../../../core/domain/system-reason.ts'

/** For each error code: why no answer came, and what to do. */
const REASONS: readonly (readonly [codes: RegExp, reason: (url: URL) => string])[] = [
  [/^HPE_/, ({ host }) => `what answers there is not HTTP. With TLS its address begins with https://${host}`],
  [/^ECONNREFUSED$/, () => 'nothing listens there. Is it running, and is this its internal listener (listen.internal)?'],
  [/^(?:ENOTFOUND|EAI_)/, ({ hostname }) => `the name ${hostname} is not found`],
  [/^ECONNRESET$/, ({ host }) => `the connection was ended without an answer. With TLS its address begins with https://${host}`],
  [/^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/, () => 'there is no route to it: look at the address, the network and the firewall'],
]

/** Returns the error for a request that got no complete answer. Its message says what to do next. */
export function unreachable(address: string, cause: unknown): Error {
  const url = new URL(address)
  const code = systemCode(cause) ?? ''
  const fault = tlsFaultOf(code)
  const known = REASONS.find(([codes]) => codes.test(code))?.[1](url)
  const reason =
    (fault === null ? known : `${tlsMeaning(fault, url.host)}. ${tlsRemedy(fault, '--ca or RELAY_CA')}`.replace(/\.$/, '')) ??
    `${cause instanceof Error && code === '' ? cause.message : 'the connection failed'}. Is this its internal listener (listen.internal)?`
  return new Error(`no relay answers at ${url.origin}: ${reason}`, { cause })
}
