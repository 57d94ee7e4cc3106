import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/**
 * The TLS context: it trusts the public authorities and, if given, a private one (PEM). Created once for many connections, because a
 * context per connection takes memory that the collector does not see.
 */
export function createTlsContext(ca: string | undefined): SecureContext {
  return createSecureContext(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] })
}
