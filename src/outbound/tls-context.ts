import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/**
 * What is trusted when speaking TLS: the well-known authorities, and a private one (PEM) besides if there is one. Made once for many
 * connections: a context for every one is memory that the collector does not see.
 */
export function createTlsContext(ca: string | undefined): SecureContext {
  return createSecureContext(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] })
}
