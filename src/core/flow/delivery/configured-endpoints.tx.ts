import { newHealth, tryChanged } from '../../domain/delivery/endpoint-health.ts'
import {
  type ConfiguredEndpoint,
  type EndpointState,
  isSentDifferently,
  isToBeRemoved,
  lookAtUnnamed,
  type UnnamedEndpoint,
  type UnnamedRequest,
  withDisabled,
} from '../../domain/delivery/endpoint-state.ts'
import { OPERATOR_NAME } from '../../domain/delivery/operator-event.ts'
import { backfillSpan } from '../../domain/history/audience.ts'
import { parseStored } from '../../domain/json-body.ts'
import { saveSetting } from '../../store/settings.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import { recordOperatorEvent } from '../audit.tx.ts'
import type { WriteSide } from '../write-side.ts'
import { explainStart, firstUnqueuedSequence, startPosition } from './edit-endpoints.tx.ts'

/** The verbs that make the stored endpoints match the config. `saveOperator` saves the endpoint for operator events. */
export function createConfiguredEndpoints(
  store: Transactions,
  saveOperator: (tx: WriteTx, url: string, nowMs: number) => Promise<void>,
): Pick<WriteSide, 'syncEndpoints' | 'removeUnnamedEndpoints'> {
  return {
    syncEndpoints: (configured, nowMs, operatorUrl, isStarting = true) =>
      store.transaction(async (tx) => {
        const standing = await tx.listEndpoints()
        const before = await disabledBefore(tx, standing)
        for (const endpoint of configured) await saveConfigured(tx, { standing, before, nowMs }, endpoint)
        const names = [...configured.map(({ name }) => name), ...(operatorUrl === null ? [] : [OPERATOR_NAME])]
        await pauseUnnamed(tx, { names, nowMs, passedMs: 0, removeAfterMs: Number.POSITIVE_INFINITY, isStarting })
        if (operatorUrl !== null) await saveOperator(tx, operatorUrl, nowMs)
      }),

    removeUnnamedEndpoints: (request) =>
      store.transaction((tx) => pauseUnnamed(tx, { ...request, isStarting: false }), { ofRole: 'janitor' }),
  }
}

async function saveConfigured(
  tx: WriteTx,
  {
    standing,
    before,
    nowMs,
  }: {
    readonly standing: readonly EndpointState[]
    readonly before: ReadonlyMap<string, EndpointState['disabled']>
    readonly nowMs: number
  },
  configured: ConfiguredEndpoint,
): Promise<void> {
  const { from = null, secretsFingerprint, hasNewSecrets = false, ...endpoint } = configured
  const known = standing.find((state) => state.endpoint.name === endpoint.name)
  if (known !== undefined && known.origin !== 'config') {
    throw new Error(`endpoints: "${endpoint.name}" is the name of an endpoint that the config file does not define`)
  }
  const id = known?.endpoint.id ?? ''
  const was = known?.disabled === 'unnamed' ? before.get(id) : known?.disabled
  const byOrder = was === 'operator' ? null : (was ?? null)
  const disabled = endpoint.enabled ? byOrder : 'operator'
  const start = known === undefined ? await startPosition(tx, from, nowMs) : { kind: 'ok' as const, ...known }
  if (start.kind !== 'ok') throw new Error(`endpoints: "${endpoint.name}" cannot start at ${from}: ${explainStart(start)}`)
  const { queuedTo } = start
  const isOther = (before: EndpointState) => {
    const { secretsFingerprint: was = secretsFingerprint } = before
    return hasNewSecrets || was !== secretsFingerprint || isSentDifferently(before.endpoint, endpoint)
  }
  const health = known === undefined ? newHealth : isOther(known) ? tryChanged(known.health, nowMs) : known.health
  const next = await firstUnqueuedSequence(tx, queuedTo)
  const backfilled = backfillSpan(known?.backfilled ?? null, endpoint.backfill, next)
  const stood = {
    disabled: null,
    firstSequence: next,
    beganAtMs: start.beganAtMs,
    ...known,
    health,
    keys: null,
    queuedTo,
    backfilled,
    endpoint: { ...endpoint, id },
    origin: 'config' as const,
    ...(secretsFingerprint === undefined ? {} : { secretsFingerprint }),
  }
  await tx.saveEndpoint(withDisabled(stood, disabled, { atMs: nowMs, by: null }))
}

/** The stored setting that lists the endpoints that no config names any more. */
const UNNAMED = 'unnamed-endpoints'

/** Returns why each paused endpoint was disabled before its pause, by id; null: it was enabled. */
async function disabledBefore(tx: WriteTx, states: readonly EndpointState[]): Promise<ReadonlyMap<string, EndpointState['disabled']>> {
  if (!states.some(isPaused)) return new Map()
  return new Map((await loadUnnamed(tx)).map(({ id, disabled }) => [id, disabled]))
}

/**
 * Pauses endpoints that a config file has defined and that no replica's config names any more. Removes endpoints that no config has named
 * for long enough, and returns their names. If a replica's config names a paused endpoint again, that replica resumes the endpoint.
 */
async function pauseUnnamed(tx: WriteTx, request: UnnamedRequest): Promise<readonly string[]> {
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
    // A config names the endpoint again, but its replica has not resumed it yet. So no time counts towards its removal.
    if (!isNamedNowhere(state)) kept.push(...(isPaused(state) ? [{ ...seen, sinceMs: request.nowMs, forMs: 0 }] : []))
    else if (isToBeRemoved(seen, configured.latestAtMs, request.removeAfterMs)) {
      await tx.removeEndpoint(state.endpoint.id, request.nowMs)
      await recordEvent(tx, 'endpoint_removed', state, request.nowMs)
      removed.push(state.endpoint.name)
    } else {
      kept.push(seen)
      if (isPaused(state)) continue
      await tx.saveEndpoint(paused(state, request.nowMs))
      await recordEvent(tx, 'endpoint_disabled', state, request.nowMs)
    }
  }
  await saveSetting(tx, UNNAMED, Buffer.from(JSON.stringify(kept)))
  return removed
}

/** Records the event, unless it is about the endpoint that gets operator events: that endpoint could not receive it. */
async function recordEvent(
  tx: WriteTx,
  event: 'endpoint_removed' | 'endpoint_disabled',
  state: EndpointState,
  nowMs: number,
): Promise<void> {
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

/** Reads what `pauseUnnamed` has saved, in this version or an older one. */
async function loadUnnamed(tx: WriteTx): Promise<readonly UnnamedEndpoint[]> {
  const kept = await tx.loadSetting(UNNAMED)
  const list = kept === null ? [] : parseStored(Buffer.from(kept).toString())
  return Array.isArray(list) ? list.filter(isUnnamed) : []
}

function isUnnamed(one: unknown): one is UnnamedEndpoint {
  return typeof one === 'object' && one !== null && 'id' in one && 'sinceMs' in one && 'forMs' in one && 'disabled' in one
}
