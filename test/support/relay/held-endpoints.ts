import type { HeldEndpoints } from '../../../src/core/flow/delivery/dispatching/dispatch-rounds.ts'

/** A relay without replicas delivers to all endpoints. */
export const allEndpoints: HeldEndpoints = {
  endpoints: () => null,
  delivers: () => true,
  term: () => 0,
  signal: () => new AbortController().signal,
}
