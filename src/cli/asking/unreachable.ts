import { systemCode } from '../../domain/errors.ts'

const UNTRUSTED =
  'its certificate is not trusted. If a private authority has signed it, name the file with that authority (PEM) with --ca or in RELAY_CA'

/** For each error code: why no answer came, and what to do. */
const REASONS: readonly (readonly [codes: RegExp, reason: (url: URL) => string])[] = [
  [/^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT)/, () => UNTRUSTED],
  [/^CERT_HAS_EXPIRED$/, () => 'its certificate has expired'],
  [/^CERT_NOT_YET_VALID$/, () => 'its certificate is not valid yet: is the clock of this machine right?'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, ({ hostname }) => `its certificate is not for ${hostname}: use a name that is in the certificate`],
  [/^(?:EPROTO|ERR_SSL_)/, ({ host }) => `it does not speak TLS there. Without TLS its address begins with http://${host}`],
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
  const known = REASONS.find(([codes]) => codes.test(code))?.[1](url)
  const reason =
    known ??
    `${cause instanceof Error && code === '' ? cause.message : 'the connection failed'}. Is this its internal listener (listen.internal)?`
  return new Error(`no relay answers at ${url.origin}: ${reason}`, { cause })
}
