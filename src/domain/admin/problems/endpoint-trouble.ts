import { typedName } from '../../delivery/endpoint.ts'
import type { EndpointState } from '../../delivery/endpoint-state.ts'
import { isInTrouble } from './verdict.ts'

/** Says in a few sentences that an endpoint is in trouble, and which command shows why. Null: it is not in trouble. */
export function describeTrouble(state: EndpointState): string | null {
  if (!isInTrouble(state)) return null
  const { endpoint, disabled, health } = state
  const look = `See: parcel-relay endpoints show ${typedName(endpoint)}.`
  if (disabled === 'gone') return `It answered 410 Gone and is disabled. ${look}`
  if (disabled !== null) return `It failed for 120 h and is disabled. ${look}`
  // Say "has accepted nothing since", because "has failed since" would be wrong: while the relay was stopped, nothing was attempted.
  const since = health.failingSinceMs === null ? '' : ` since ${new Date(health.failingSinceMs).toISOString()}`
  return `It fails, and has accepted nothing${since}. ${look}`
}
