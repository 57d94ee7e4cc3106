import type { Config } from '../../config/config.ts'
import { readCertificates } from '../../config/named-file.ts'
import type { Route } from '../../domain/delivery/delivery-request.ts'
import { readTlsPair } from '../tls-files.ts'

type ConfiguredRoute = Pick<Config['endpoints'][number], 'name' | 'proxy' | 'caFile' | 'clientCert'>

/** Reads how to reach an endpoint of the config. If a file cannot be used, throws an error that names the setting. */
export function readRoute({ name, proxy, caFile, clientCert }: ConfiguredRoute): Route {
  const setting = `endpoints: "${name}"`
  return {
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
    ...(caFile === null ? {} : { ca: readCertificates(`${setting}: caFile`, caFile) }),
    ...(clientCert === null ? {} : { client: pemOf(readTlsPair(`${setting}: clientCert`, clientCert)) }),
  }
}

function pemOf({ cert, key }: { readonly cert: Buffer; readonly key: Buffer }) {
  return { cert: cert.toString(), key: key.toString() }
}
