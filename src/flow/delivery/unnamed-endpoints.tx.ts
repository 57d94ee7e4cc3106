import { type EndpointState, withDisabled } from '../../domain/delivery/endpoint-state.ts'
import { isToBeRemoved, lookAtUnnamed, type UnnamedEndpoint, type UnnamedRequest } from '../../domain/delivery/unnamed-endpoint.ts'
import { recordOperatorEvent } from '../operator-events.tx.ts'
import type { WriteTx } from '../write-store.ts'

/** The setting that keeps them. */
const UNNAMED = 'unnamed-endpoints'

/** Why the endpoints that are paused were disabled before that, by id; null: they were not. */
export async function disabledBefore(
  tx: WriteTx,
  states: readonly EndpointState[],
): Promise<ReadonlyMap<string, EndpointState['disabled']>> {
  if (!states.some(isPaused)) return new Map()
  return new Map((await loadUnnamed(tx)).map(({ id, disabled }) => [id, disabled]))
}

/**
 * Pauses the endpoints that a config defined and none names any more: neither this one nor that of another replica. Removes those for which that has lasted long
 * enough; resolves with their names. One that is named again is resumed by whoever names it.
 */
export async function pauseUnnamed(tx: WriteTx, request: UnnamedRequest): Promise<readonly string[]> {
  const states = await tx.listEndpoints()
  const notMine = states.filter(({ endpoint, origin }) => origin !== 'managed' && !request.names.includes(endpoint.name))
  if (notMine.length === 0) return []
  const configured = await tx.endpointsConfigured()
  const isNamedNowhere = ({ endpoint }: EndpointState) => !configured.names.includes(endpoint.name)
  if (!notMine.some((state) => isNamedNowhere(state) || isPaused(state))) return []
  const known = new Map((await loadUnnamed(tx)).map((one) => [one.id, one]))
  const kept: UnnamedEndpoint[] = []
  const removed: string[] = []
  for (const state of notMine) {
    const before = isPaused(state) ? (known.get(state.endpoint.id) ?? null) : null
    const seen = lookAtUnnamed(state, before, { ...request, latestAtMs: configured.latestAtMs })
    // Somebody names it again, and has not resumed it yet: time that passed before counts no more.
    if (!isNamedNowhere(state)) kept.push(...(isPaused(state) ? [{ ...seen, sinceMs: request.nowMs, forMs: 0 }] : []))
    else if (isToBeRemoved(seen, configured.latestAtMs, request.removeAfterMs)) {
      await tx.removeEndpoint(state.endpoint.id, request.nowMs)
      await tellOf(tx, 'endpoint_removed', state, request.nowMs)
      removed.push(state.endpoint.name)
    } else {
      kept.push(seen)
      if (isPaused(state)) continue
      await tx.saveEndpoint(paused(state, request.nowMs))
      await tellOf(tx, 'endpoint_disabled', state, request.nowMs)
    }
  }
  await tx.saveSetting(UNNAMED, Buffer.from(JSON.stringify(kept)))
  return removed
}

/** Operators are not told about their own endpoint: the message would have to go there. */
async function tellOf(tx: WriteTx, event: 'endpoint_removed' | 'endpoint_disabled', state: EndpointState, nowMs: number): Promise<void> {
  if (state.origin === 'operator') return
  const endpoint = { id: state.endpoint.id, name: state.endpoint.name }
  await recordOperatorEvent(tx, event === 'endpoint_removed' ? { event, endpoint } : { event, endpoint, because: 'unnamed' }, nowMs)
}

function isPaused({ disabled }: Pick<EndpointState, 'disabled'>): boolean {
  return disabled === 'unnamed'
}

function paused(state: EndpointState, nowMs: number): EndpointState {
  const disabled = withDisabled(state, 'unnamed', { atMs: nowMs, by: null })
  return { ...disabled, endpoint: { ...state.endpoint, enabled: false } }
}

/** As `pauseUnnamed` wrote them, in this version or an older one. */
async function loadUnnamed(tx: WriteTx): Promise<readonly UnnamedEndpoint[]> {
  const kept = await tx.loadSetting(UNNAMED)
  const list: unknown = kept === null ? [] : JSON.parse(Buffer.from(kept).toString())
  return Array.isArray(list) ? list.filter(isUnnamed) : []
}

function isUnnamed(one: unknown): one is UnnamedEndpoint {
  return typeof one === 'object' && one !== null && 'id' in one && 'sinceMs' in one && 'forMs' in one && 'disabled' in one
}
