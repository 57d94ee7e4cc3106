import { noFilters } from '../../../src/domain/delivery/endpoint.ts'
import type { ConfiguredEndpoint } from '../../../src/domain/delivery/endpoint-state.ts'

/** An endpoint of a config with this name. */
export function endpointNamed(name: string): ConfiguredEndpoint {
  return {
    name,
    url: 'http://127.0.0.1:9/',
    enabled: true,
    signature: 'carrier',
    filters: noFilters,
    backfill: false,
    ratePerSecond: null,
    concurrency: null,
    scheduleMs: null,
    refusals: 'wait',
    headers: [],
  }
}
