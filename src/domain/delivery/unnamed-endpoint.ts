import type { EndpointState } from './endpoint-state.ts'

/*
 * An endpoint that a config defined, but that no config of any replica names any more (DOMAIN 7.4).
 *
 *   named ── no replica's config names it ──► unnamed: nothing is sent, everything queues
 *   unnamed ── a config names it again ──► named: the same id, the same backlog
 *   unnamed ── in this state, replicas have run for `removeAfterMs`, and one has loaded its config ──► removed
 *   unnamed ── an operator deletes it ──► removed
 *
 * While operators change the replicas one by one, or while a replica is down, there may for a while be no running replica whose config
 * names the endpoint. The endpoint must keep its id and its backlog meanwhile.
 */

export interface UnnamedEndpoint {
  readonly id: string
  /** Since when no config has named it, as far as the relay knows. Epoch milliseconds of the store's clock. */
  readonly sinceMs: number
  /** For how much of the time since `sinceMs` at least one replica was running, milliseconds. */
  readonly forMs: number
  /** Why it was disabled before it became unnamed; null: it was enabled. */
  readonly disabled: EndpointState['disabled']
}

/** The configs of the replicas that share a store. */
export interface ConfiguredNames {
  /** The names of the endpoints in any of these configs. */
  readonly names: readonly string[]
  /** When a replica last started or reloaded with one of these configs, epoch milliseconds; null: no replicas share the store. */
  readonly latestAtMs: number | null
}

export interface UnnamedRequest {
  /** The names of the endpoints in this replica's config. */
  readonly names: readonly string[]
  readonly nowMs: number
  /** How much time has passed since this replica last looked, milliseconds; 0: it looks for the first time. */
  readonly passedMs: number
  readonly removeAfterMs: number
  /**
   * Whether this replica has just loaded its config. If that config does not name an endpoint, an operator has removed the endpoint on
   * purpose.
   */
  readonly isStarting: boolean
}

export interface UnnamedLook extends Omit<UnnamedRequest, 'names' | 'removeAfterMs'> {
  /** See `ConfiguredNames`. */
  readonly latestAtMs: number | null
}

/** Returns the updated record of an unnamed endpoint. `known`: its record so far; null: a config named it until now. */
export function lookAtUnnamed(
  { endpoint, disabled }: Pick<EndpointState, 'endpoint' | 'disabled'>,
  known: UnnamedEndpoint | null,
  { nowMs, passedMs, isStarting, latestAtMs }: UnnamedLook,
): UnnamedEndpoint {
  const sinceMs = known?.sinceMs ?? nowMs
  return {
    id: endpoint.id,
    sinceMs: isStarting ? Math.min(sinceMs, latestAtMs ?? sinceMs) : sinceMs,
    forMs: known === null ? 0 : known.forMs + passedMs,
    disabled: known === null ? disabled : known.disabled,
  }
}

/**
 * Whether the endpoint must be removed. It stays at least until a replica has loaded its config after the endpoint became unnamed. Before
 * that, an operator may still be changing the configs of the replicas one by one.
 */
export function isToBeRemoved({ sinceMs, forMs }: UnnamedEndpoint, latestAtMs: number | null, removeAfterMs: number): boolean {
  return forMs >= removeAfterMs && (latestAtMs === null || latestAtMs >= sinceMs)
}
