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
  changeEndpoint,
  type EndpointChangeRequest,
  type EndpointEdit,
  type EndpointState,
  isSentDifferently,
  type KeyChange,
  withDisabled,
} from '../../domain/delivery/endpoint-state.ts'
import { backfillSpan } from '../../domain/history/audience.ts'
import { listDamagedEndpoints, reserveEndpoint } from '../../store/delivery/endpoints.ts'
import { recordedAt } from '../../store/delivery/feed.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import { audit } from '../audit.tx.ts'
import type { WriteSide } from '../write-side.ts'

type EditEndpoints = Pick<WriteSide, 'reserveEndpoint' | 'addEndpoint' | 'changeEndpoint' | 'resealEndpoint' | 'removeEndpoint'>

/** The verbs behind the API that add, change and remove endpoints (DOMAIN 7.4). */
export function createEditEndpoints(store: Transactions): EditEndpoints {
  const edit = inSequence(store)

  return {
    reserveEndpoint: (nowMs) => store.transaction((tx) => reserveEndpoint(tx, nowMs)),

    addEndpoint: ({ id, settings, key, headers = {}, from, nowMs, ...order }) =>
      edit(async (tx) => {
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

    changeEndpoint: (request) =>
      edit(async (tx) => {
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

    resealEndpoint: ({ id, replacements }) =>
      edit(async (tx) => {
        const state = await find(tx, id)
        if (state === undefined || state.keys === null || !sealedTexts(state.keys).some((text) => replacements.has(text))) return false
        await tx.saveEndpoint({ ...state, keys: resealKeys(state.keys, replacements) })
        return true
      }),

    removeEndpoint: ({ id, nowMs, ...order }) =>
      edit(async (tx) => {
        const state = await find(tx, id)
        if (state === undefined && !(await listDamagedEndpoints(tx)).some((damaged) => damaged.id === id)) return { kind: 'unknown' }
        // An endpoint of the config file cannot be removed, because the next start would add it again.
        if (state !== undefined && state.origin !== 'managed' && state.disabled !== 'unnamed') return { kind: 'read_only' }
        await tx.removeEndpoint(id, nowMs)
        audit(tx, order)
        return { kind: 'done' }
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
export async function startPosition(tx: WriteTx, from: number | null, nowMs: number): Promise<Start> {
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
export async function firstUnqueuedSequence(tx: WriteTx, queuedTo: number | null): Promise<number> {
  return queuedTo === null ? await tx.sequenceToCome() : queuedTo + 1
}

/** Explains a refused start to operators. */
export function explainStart(refused: NoStart): string {
  if (refused.kind === 'from_ahead') return `the last sequence is ${refused.last}. To start with what comes next, give "now".`
  return `events before sequence ${refused.oldest} are no longer kept.`
}
