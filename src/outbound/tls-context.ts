import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { ClientCertificate } from '../domain/delivery/post-request.ts'

/** The authority (PEM) that connections trust in addition to the public ones, and the certificate that they show on request. */
export interface TlsIdentity {
  readonly ca?: string | undefined
  readonly client?: ClientCertificate | undefined
}

/** The TLS context. Created once for many connections, because a context per connection takes memory that the collector does not see. */
export function createTlsContext({ ca, client }: TlsIdentity): SecureContext {
  return createSecureContext({
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
    ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
  })
}
