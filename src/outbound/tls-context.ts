import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { ClientCertificate } from '../domain/delivery/post-request.ts'

/** Whom connections trust besides the public authorities (PEM), and what they show if the other side asks for a certificate. */
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
