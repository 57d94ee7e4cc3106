import type { EndpointState } from './endpoint-state.ts'

/*
 * An endpoint that a config defined and that none names any more (DOMAIN 7.4).
 *
 *   named ── no replica's config names it ──► unnamed: nothing is sent, everything queues
 *   unnamed ── named again ──► named: the same id, the same backlog
 *   unnamed ── replicas have seen `removeAfterMs` pass, and one has loaded a later config ──► removed
 *   unnamed ── an operator deletes it ──► removed
 *
 * While replicas are changed one by one, or one of them is away, an endpoint may be named by none for a while: its id and its backlog must outlive that.
 */

export interface UnnamedEndpoint {
  readonly id: string
  /** Since when no config has named it, epoch milliseconds of the store's clock. */
  readonly sinceMs: number
  /** How much of that time a replica has seen pass. */
  readonly forMs: number
  /** Why it was disabled before; null: it was not. */
  readonly disabled: EndpointState['disabled']
}

/** The configs of the replicas that share a store. */
export interface ConfiguredNames {
  /** The names of the endpoints in any of these configs. */
  readonly names: readonly string[]
  /** When the latest of these configs took effect, by a start or a reload, epoch milliseconds; null: nobody shares the store. */
  readonly latestAtMs: number | null
}

export interface UnnamedRequest {
  /** The names of the endpoints in this replica's config. */
  readonly names: readonly string[]
  readonly nowMs: number
  /** How much time was seen to pass since the last look; 0: nobody looked. */
  readonly passedMs: number
  readonly removeAfterMs: number
  /**
   * Whether the config of the replica that looks has just taken effect. If that config does not name an endpoint either, this is on
   * purpose.
   */
  readonly isStarting: boolean
}

/** A look at the endpoints that no config names. */
export interface UnnamedLook extends Omit<UnnamedRequest, 'names' | 'removeAfterMs'> {
  /** When the latest config took effect; see `ConfiguredNames`. */
  readonly latestAtMs: number | null
}

/** The record of an unnamed endpoint after a look. `known` null: a config named it until now. */
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
 * Whether the endpoint must be removed. A config must have taken effect since it became unnamed. If all are older, a change of all configs
 * may still be going on.
 */
export function isToBeRemoved({ sinceMs, forMs }: UnnamedEndpoint, latestAtMs: number | null, removeAfterMs: number): boolean {
  return forMs >= removeAfterMs && (latestAtMs === null || latestAtMs >= sinceMs)
}
