import type { ConfiguredEndpoint } from '../../../src/domain/delivery/endpoint-state.ts'
import { endpointSettings } from './stored-endpoint.ts'

/** An endpoint of a config with this name. */
export function endpointNamed(name: string): ConfiguredEndpoint {
  return { ...endpointSettings, name, url: 'http://127.0.0.1:9/' }
}
