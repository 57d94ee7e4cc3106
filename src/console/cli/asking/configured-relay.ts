import type { Config } from '../../../core/config/config.ts'
import { readCertificates } from '../../../core/config/named-file.ts'
import type { ClientOptions } from './ask-relay.ts'

/** How this machine reaches a relay with this config: its address, and the certificate that it shows. */
export function addressOf(config: Config): Pick<ClientOptions, 'url' | 'pinned'> {
  return { url: internalUrl(config), pinned: ownCertificate(config) }
}

function internalUrl({ listen: { internal } }: Config): string {
  const host = internal.host === '0.0.0.0' ? '127.0.0.1' : internal.host === '::' ? '::1' : internal.host
  return `${internal.tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${internal.port}`
}

/** Reads the certificate that the relay shows to this machine. It may be for another host name. Undefined: no TLS, or no readable file. */
function ownCertificate({ listen: { internal } }: Config): string | undefined {
  try {
    const chain = internal.tls === null ? '' : readCertificates('listen.internal.tls.certFile', internal.tls.certFile)
    // The first certificate of a chain is the relay's own. Do not trust the others: that would trust every certificate that they sign.
    return /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/.exec(chain)?.[0]
  } catch {
    return undefined
  }
}
