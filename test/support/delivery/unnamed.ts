import type { ConfiguredEndpoint } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointSettings } from './stored-endpoint.ts'

/** Returns an endpoint with this name, as a config defines it. */
export function endpointNamed(name: string): ConfiguredEndpoint {
  return { ...endpointSettings, name, url: 'http://127.0.0.1:9/' }
}
