import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { ClientCertificate } from '../domain/delivery/delivery-request.ts'

/** `ca`: a certificate authority (PEM) to trust in addition to the public ones. `client`: the certificate to show if a server asks for one. */
export interface TlsIdentity {
  readonly ca?: string | undefined
  readonly client?: ClientCertificate | undefined
}

/** Creates a TLS context. Use it for many connections: each context takes native memory, which the garbage collector does not count. */
export function createTlsContext({ ca, client }: TlsIdentity): SecureContext {
  return createSecureContext({
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
    ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
  })
}
