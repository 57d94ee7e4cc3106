import type { Audited } from '../../domain/admin/operator-action.ts'
import { newHealth, resetHealth, tryChanged } from '../../domain/delivery/endpoint-health.ts'
import {
  changeHeaders,
  endOverlap,
  FIXED_HEADERS_MAX,
  onlyKey,
  replaceKey,
  resealKeys,
  rotateKeys,
  type SealedKeys,
  sealedTexts,
} from '../../domain/delivery/endpoint-keys.ts'
import {
  type AddedEndpoint,
  type ConfiguredEndpoint,
  changeEndpoint,
  type EndpointChangeRequest,
  type EndpointEdit,
  type EndpointState,
  isSentDifferently,
  isToBeRemoved,
  type KeyChange,
  lookAtUnnamed,
  type UnnamedEndpoint,
  type UnnamedRequest,
  withDisabled,
} from '../../domain/delivery/endpoint-state.ts'
import { OPERATOR_NAME } from '../../domain/delivery/operator-event.ts'
import { backfillSpan } from '../../domain/history/audience.ts'
import { parseStored } from '../../domain/json-body.ts'
import { listDamagedEndpoints, reserveEndpoint } from '../../store/delivery/endpoints.ts'
import { recordedAt } from '../../store/delivery/feed.ts'
import { saveSetting } from '../../store/settings.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import { audit, recordOperatorEvent } from '../audit.tx.ts'

/** The verbs behind the API that add, change and remove endpoints (DOMAIN 7.4). */
export function createEditEndpoints(store: Transactions) {
  const edit = inSequence(store)

  return {
    /** Reserves an id before the endpoint is added, because the endpoint's key is sealed for this id. */
    reserveEndpoint: (nowMs: number) => store.transaction((tx) => reserveEndpoint(tx, nowMs)),

    /** Adds a managed endpoint under a reserved id. It gets the feed from sequence `from` on; null: from now on. */
    addEndpoint: ({ id, settings, key, headers = {}, from, nowMs, ...order }: AddedEndpoint & Audited) =>
      edit(async (tx): Promise<EndpointEdit> => {
        const conflict = await nameConflict(tx, settings.name, id)
        if (conflict !== null) return conflict
        const start = await startPosition(tx, from, nowMs)
        if (start.kind !== 'ok') return start
        const firstSequence = await firstUnqueuedSequence(tx, start.queuedTo)
        const enabled: EndpointState = {
          endpoint: { ...settings, id },
          origin: 'managed',
          disabled: null,
          health: newHealth,
          keys: changeHeaders(onlyKey(key, nowMs), headers),
          queuedTo: start.queuedTo,
          firstSequence,
          beganAtMs: start.beganAtMs,
          backfilled: backfillSpan(null, settings.backfill, firstSequence),
        }
        const by = order.action?.by.name ?? null
        const state = withDisabled(enabled, settings.enabled ? null : 'operator', { atMs: nowMs, by })
        await tx.saveEndpoint(state)
        audit(tx, order)
        return { kind: 'done', state }
      }),

    /** Changes a managed endpoint, or enables an endpoint of the config file again after it answered 410 or kept failing. */
    changeEndpoint: (request: EndpointChangeRequest & Audited) =>
      edit(async (tx): Promise<EndpointEdit> => {
        const state = await find(tx, request.id)
        if (state === undefined) return { kind: 'unknown' }
        if (state.origin !== 'managed' && !onlyEnablesAgain(state, request)) return { kind: 'read_only' }
        const { name } = request.change
        const conflict = name === undefined ? null : await nameConflict(tx, name, request.id)
        if (conflict !== null) return conflict
        const keys = keysAfter(state.keys, request)
        if (keys === 'not_rotating') return { kind: 'not_rotating' }
        if (Object.keys(keys?.headers ?? {}).length > FIXED_HEADERS_MAX) return { kind: 'too_many_headers' }
        const after = withKeys(changed(state, request, await firstUnqueuedSequence(tx, state.queuedTo)), keys)
        await tx.saveEndpoint(after)
        audit(tx, request)
        return { kind: 'done', state: after }
      }),

    /** Replaces sealed keys by the same keys, sealed again, except keys that were changed meanwhile. Returns whether any was replaced. */
    resealEndpoint: ({ id, replacements }: { readonly id: string; readonly replacements: ReadonlyMap<string, string> }) =>
      edit(async (tx) => {
        const state = await find(tx, id)
        if (state === undefined || state.keys === null || !sealedTexts(state.keys).some((text) => replacements.has(text))) return false
        await tx.saveEndpoint({ ...state, keys: resealKeys(state.keys, replacements) })
        return true
      }),

    /** Removes a managed endpoint, or a damaged one. `cancelRemoved` then cancels its waiting deliveries. */
    removeEndpoint: ({ id, nowMs, ...order }: Audited & { readonly id: string; readonly nowMs: number }) =>
      edit(async (tx) => {
        const state = await find(tx, id)
        if (state === undefined && !(await listDamagedEndpoints(tx)).some((damaged) => damaged.id === id)) return 'unknown'
        // An endpoint of the config file cannot be removed, because the next start would add it again.
        if (state !== undefined && state.origin !== 'managed' && state.disabled !== 'unnamed') return 'read_only'
        await tx.removeEndpoint(id, nowMs)
        audit(tx, order)
        return 'done'
      }),
  }
}

/** Runs edits one after the other: each reads and changes the list of endpoints, so most concurrent edits would conflict. */
function inSequence(store: Transactions): <T>(work: (tx: WriteTx) => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const turn = last.then(() => store.transaction(work))
    last = turn.catch(() => undefined)
    return turn
  }
}

/** Null: the endpoint can have this name. */
async function nameConflict(tx: WriteTx, name: string, id: string): Promise<EndpointEdit | null> {
  if ((await tx.listEndpoints()).some(({ endpoint }) => endpoint.name === name && endpoint.id !== id)) return { kind: 'name_taken' }
  const damaged = (await listDamagedEndpoints(tx)).find((one) => one.name === name)
  return damaged === undefined ? null : { kind: 'name_damaged', damagedId: damaged.id }
}

async function find(tx: WriteTx, id: string): Promise<EndpointState | undefined> {
  return (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === id)
}

/** The API may change an endpoint of the config file only to enable it again after it answered 410 or kept failing. */
function onlyEnablesAgain(state: EndpointState, { change, key, headers = {} }: EndpointChangeRequest): boolean {
  const given = [...Object.entries(change), ...Object.entries(headers)].filter(([, value]) => value !== undefined)
  return state.disabled !== 'operator' && state.disabled !== 'unnamed' && key === null && given.length === 1 && change.enabled === true
}

function changed(state: EndpointState, request: EndpointChangeRequest & Audited, next: number): EndpointState {
  const { change, key, headers = {}, nowMs, action } = request
  const endpoint = changeEndpoint(state.endpoint, change)
  const isEnabledAgain = change.enabled === true && state.disabled !== null
  const isOther = key !== null || Object.keys(headers).length > 0 || isSentDifferently(state.endpoint, endpoint)
  const disabled = change.enabled === undefined ? state.disabled : change.enabled ? null : 'operator'
  return {
    ...withDisabled(state, disabled, { atMs: nowMs, by: action?.by.name ?? null }),
    endpoint: { ...endpoint, enabled: disabled === null },
    health: isEnabledAgain ? resetHealth(state.health, nowMs) : isOther ? tryChanged(state.health, nowMs) : state.health,
    backfilled: backfillSpan(state.backfilled, endpoint.backfill, next),
  }
}

/** The sealed keys also hold the fixed headers, whose names the endpoint lists. */
function withKeys(state: EndpointState, keys: SealedKeys | null): EndpointState {
  return { ...state, endpoint: { ...state.endpoint, headers: Object.keys(keys?.headers ?? {}) }, keys }
}

function keysAfter(keys: SealedKeys | null, { key, headers = {}, nowMs }: EndpointChangeRequest): SealedKeys | null | 'not_rotating' {
  const after = key === null ? keys : keysRotated(keys, key, nowMs)
  return after === null || after === 'not_rotating' ? after : changeHeaders(after, headers)
}

function keysRotated(keys: SealedKeys | null, change: KeyChange, nowMs: number): SealedKeys | 'not_rotating' {
  if (change.kind === 'end') return (keys === null ? null : endOverlap(keys, nowMs)) ?? 'not_rotating'
  if (keys === null) return onlyKey(change.sealed, nowMs)
  return change.kind === 'replace' ? replaceKey(keys, change.sealed, nowMs) : rotateKeys(keys, change.sealed, nowMs)
}

type NoStart = Extract<EndpointEdit, { kind: 'from_gone' | 'from_ahead' }>
type Start = { readonly kind: 'ok'; readonly queuedTo: number | null; readonly beganAtMs: number } | NoStart

/**
 * Finds the start of an endpoint that is to get the feed from sequence `from` on. `queuedTo` is the last sequence that it does not get. If
 * `from` or `queuedTo` is null, the endpoint starts with the events that are recorded from now on. `beganAtMs`: when its first event was
 * recorded; for an endpoint that starts now, the present time.
 */
async function startPosition(tx: WriteTx, from: number | null, nowMs: number): Promise<Start> {
  const { last, prunedTo } = await tx.feedSpan()
  if (from === null) return { kind: 'ok', queuedTo: null, beganAtMs: nowMs }
  if (from === last + 1) {
    tx.nothingSince(last)
    return { kind: 'ok', queuedTo: null, beganAtMs: nowMs }
  }
  if (from > last) return { kind: 'from_ahead', last }
  // Refuse to start at deleted events, because skipping them would look as if they had never happened.
  if (prunedTo > 0 && from <= prunedTo) return { kind: 'from_gone', oldest: prunedTo + 1 }
  return { kind: 'ok', queuedTo: Math.max(0, from - 1), beganAtMs: Math.min(nowMs, (await recordedAt(tx, from)) ?? nowMs) }
}

/**
 * Returns the first sequence that is not queued for an endpoint yet. The endpoint's present settings apply from this sequence on. The value
 * may be a placeholder, so save it, but do not compare it.
 */
async function firstUnqueuedSequence(tx: WriteTx, queuedTo: number | null): Promise<number> {
  return queuedTo === null ? await tx.sequenceToCome() : queuedTo + 1
}

/** Explains a refused start to operators. */
export function explainStart(refused: NoStart): string {
  if (refused.kind === 'from_ahead') return `the last sequence is ${refused.last}. To start with what comes next, give "now".`
  return `events before sequence ${refused.oldest} are no longer kept.`
}

/** The verbs that make the stored endpoints match the config. `saveOperator` saves the endpoint for operator events. */
export function createConfiguredEndpoints(store: Transactions, saveOperator: (tx: WriteTx, url: string, nowMs: number) => Promise<void>) {
  return {
    /**
     * Makes the stored endpoints of the config file, and the endpoint for operator events, match the config. Pauses endpoints that no replica's
     * config names any more. `isStarting` false: this config was in effect before the call.
     */
    syncEndpoints: (configured: readonly ConfiguredEndpoint[], nowMs: number, operatorUrl: string | null, isStarting = true) =>
      store.transaction(async (tx) => {
        const standing = await tx.listEndpoints()
        const before = await disabledBefore(tx, standing)
        for (const endpoint of configured) await saveConfigured(tx, { standing, before, nowMs }, endpoint)
        const names = [...configured.map(({ name }) => name), ...(operatorUrl === null ? [] : [OPERATOR_NAME])]
        await pauseUnnamed(tx, { names, nowMs, passedMs: 0, removeAfterMs: Number.POSITIVE_INFINITY, isStarting })
        if (operatorUrl !== null) await saveOperator(tx, operatorUrl, nowMs)
      }),

    /**
     * Pauses the endpoints of config files that no replica's config names any more, and removes them after a while. Resolves with the names
     * of the removed endpoints.
     */
    removeUnnamedEndpoints: (request: Omit<UnnamedRequest, 'isStarting'>) =>
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
