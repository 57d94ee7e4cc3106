import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/**
 * A TLS context that trusts the public authorities and, if given, a private one (PEM). It is made once for many connections, because each
 * context takes memory that the garbage collector does not see.
 */
export function createTlsContext(ca: string | undefined): SecureContext {
  return createSecureContext(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] })
}
