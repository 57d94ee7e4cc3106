import type { Endpoint } from '../../../src/domain/delivery/endpoint.ts'
import { newHealth } from '../../../src/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../src/domain/delivery/endpoint-state.ts'
import { endpointSettings } from './stored-endpoint.ts'

/** The state of an endpoint that has no trouble, with these settings, and changed in these members. */
export function endpointState(settings: Partial<Endpoint> = {}, change: Partial<EndpointState> = {}): EndpointState {
  return {
    endpoint: { ...endpointSettings, id: '1', ...settings },
    origin: 'managed',
    disabled: null,
    health: newHealth,
    keys: null,
    queuedTo: null,
    firstSequence: 0,
    backfilled: null,
    ...change,
  }
}
