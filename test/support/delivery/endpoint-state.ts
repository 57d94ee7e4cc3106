import { newHealth } from '../../../src/core/domain/delivery/endpoint-health.ts'
import type { Endpoint, EndpointState } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointSettings } from './stored-endpoint.ts'

/** Returns the state of a healthy endpoint with these settings. The members in `change` replace those of the state. */
export function endpointState(settings: Partial<Endpoint> = {}, change: Partial<EndpointState> = {}): EndpointState {
  return {
    endpoint: { ...endpointSettings, id: '1', ...settings },
    origin: 'managed',
    disabled: null,
    health: newHealth,
    keys: null,
    queuedTo: null,
    firstSequence: 0,
    beganAtMs: 0,
    backfilled: null,
    ...change,
  }
}
