import type { ActionName, Actor, OperatorAction } from '../../domain/admin/operator-action.ts'
import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type { Endpoint, EndpointChange, EndpointSettings } from '../../domain/delivery/endpoint.ts'
import { keysAt } from '../../domain/delivery/endpoint-keys.ts'
import { parseEndpointChange, parseKeyRotation, parseNewEndpoint } from '../../domain/delivery/endpoint-settings.ts'
import {
  type EndpointEdit,
  type EndpointSearch,
  type EndpointState,
  type KeyChange,
  searchEndpoints,
} from '../../domain/delivery/endpoint-state.ts'
import { FIXED_HEADERS_MAX, fixedHeaderProblem } from '../../domain/delivery/fixed-headers.ts'
import { isStandardKey, STANDARD_KEY_RULE } from '../../domain/delivery/standard-key.ts'
import { encodeTestEvent } from '../../domain/delivery/test-event.ts'
import { AppError } from '../../domain/errors.ts'
import { wrongInput } from '../../domain/read-input.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'
import type { RouteOf, SignerOf } from './dispatching/send-delivery.ts'
import { type EndpointView, type InspectedEndpoint, inspectEndpoint, viewEndpoint, viewEndpoints } from './endpoint-view.ts'
import { createFilterWarnings } from './filter-warnings.ts'
import type { DeliverySender } from './ports.ts'
import { explainStart } from './start-position.tx.ts'
import type { Vault } from './vault.ts'

export interface ManageEndpointsPorts {
  readonly write: Pick<
    WriteSide,
    'reserveEndpoint' | 'addEndpoint' | 'changeEndpoint' | 'removeEndpoint' | 'retryEndpoint' | 'recordAction'
  >
  readonly reads: Pick<ReadSide, 'listEndpoints' | 'countBacklog' | 'lastFailures' | 'listFailures' | 'listStatuses'>
  readonly vault: Vault
  readonly sender: DeliverySender
  readonly signerOf: SignerOf
  readonly routeOf: RouteOf
  /** Why nothing may be sent to a URL; null: something may. */
  readonly refuseUrl: (url: string) => string | null
  /** The header that names people to the portal (`portal.trustedHeader`); null: there is none. */
  readonly trustedHeader: () => string | null
  /** 32 random bytes in Base64. */
  readonly makeKey: () => string
  readonly clock: Clock
  /** Call it when the endpoints have changed. Nothing may be sent with their old settings. */
  readonly review: () => void
}

/** An endpoint with its new key, which is shown only this once; null: the key did not change. */
export interface KeyedEndpoint {
  readonly state: EndpointView
  readonly sharedKey: string | null
  /** What is odd about its new settings, in sentences. */
  readonly warnings: readonly string[]
}

/** A page of the endpoints that a search found. */
export interface FoundEndpoints {
  readonly endpoints: readonly EndpointView[]
  /** How many were found on all pages. */
  readonly found: number
  /** All endpoints, whether or not they were found. */
  readonly all: readonly EndpointState[]
}

/**
 * Lets operators manage endpoints (CONTRACT, `/relay/endpoints`). Bodies are raw JSON values; ids are raw path text and throw `not_found`
 * if there is no such endpoint.
 */
export interface ManageEndpoints {
  /** Lists endpoints in the order in which they were added: those with ids above `cursor`, up to `limit`; with `name`, only the one with that name. */
  list(page: { readonly cursor: number; readonly limit: number; readonly name: string | null }): Promise<{
    readonly endpoints: readonly EndpointView[]
    /** The cursor of the next page; null: this is the last. */
    readonly next: string | null
  }>
  /** Looks for endpoints. Those in trouble come first. Returns up to `limit` after the first `skip`. */
  search(question: EndpointSearch & { readonly skip: number; readonly limit: number }): Promise<FoundEndpoints>
  /** All endpoints, without counts of what waits. */
  states(): Promise<readonly EndpointState[]>
  find(id: string): Promise<InspectedEndpoint>
  /** Adds an endpoint. Throws `bad_request`, `endpoint_exists` and, if it should start with events that are no longer kept, `feed_gone`. */
  add(body: unknown, by: Actor): Promise<KeyedEndpoint>
  /**
   * Changes an endpoint. A new key begins to replace the old one, as with `rotate`. Throws `bad_request`, `endpoint_exists` and
   * `endpoint_read_only`.
   */
  change(id: string, body: unknown, by: Actor): Promise<KeyedEndpoint>
  /**
   * Replaces the key: both keys sign for 24 h, then the new one alone. It can also end that overlap now. Throws `bad_request`,
   * `endpoint_read_only` and, if no key is being replaced, `not_rotating`.
   */
  rotate(id: string, body: unknown, by: Actor): Promise<KeyedEndpoint>
  /** Makes everything that waits for the endpoint due now. Throws `not_retryable`. */
  retry(id: string, by: Actor): Promise<EndpointView>
  remove(id: string, by: Actor): Promise<void>
  /** Makes one attempt with a test event. It is not recorded, and does not count for the endpoint's health. */
  test(id: string, by: Actor): Promise<AttemptResult>
}

export function createManageEndpoints(ports: ManageEndpointsPorts): ManageEndpoints {
  const { write, reads, vault, clock } = ports
  const warningsAbout = createFilterWarnings(reads)

  /** The operators' endpoint is a setting, so it cannot be managed here. */
  const all = async () => (await reads.listEndpoints()).filter(({ origin }) => origin !== 'operator').map(asItStands)

  /** The state without keys that are no longer valid. */
  function asItStands(state: EndpointState): EndpointState {
    return state.keys === null ? state : { ...state, keys: keysAt(state.keys, clock.now()) }
  }

  async function stateOf(id: string): Promise<EndpointState> {
    const state = (await all()).find(({ endpoint }) => endpoint.id === id)
    return state ?? unknown()
  }

  const orderOf = (by: Actor, action: ActionName, endpoint: Pick<Endpoint, 'id' | 'name'>, detail: object = {}) =>
    auditedOrder({ by, action, atMs: clock.now() }, endpoint, detail)

  /** Seals the values of fixed headers; null stays null. */
  async function sealAll<Value extends string | null>(headers: Readonly<Record<string, Value>>, id: string) {
    checkHeaders(Object.keys(headers), ports)
    const seal = async ([name, value]: readonly [string, Value]) => [name, value === null ? value : await vault.seal(value, id)] as const
    return Object.fromEntries(await Promise.all(Object.entries(headers).map(seal)))
  }

  async function edit(id: string, change: EndpointChange, { sharedKey, kind, headers = {} }: SecretEdit, action: OperatorAction) {
    const newKey = sharedKey === null ? ports.makeKey() : sharedKey
    const none: KeyChange | null = kind === 'replace' ? { kind: 'end' } : null
    const key = newKey === undefined ? none : { kind, sealed: await vault.seal(newKey, id) }
    const sealed = await sealAll(headers, id)
    const state = done(await write.changeEndpoint({ id, change, key, headers: sealed, nowMs: clock.now(), action }))
    ports.review()
    const warnings = change.filters === undefined ? [] : await warningsAbout(change.filters)
    return { state: await viewEndpoint(reads, asItStands(state)), sharedKey: newKey ?? null, warnings }
  }

  return {
    list: async (page) => await viewPage(reads, await all(), page),
    async search({ skip, limit, ...question }) {
      const states = await all()
      const found = searchEndpoints(states, question)
      return { endpoints: await viewEndpoints(reads, found.slice(skip, skip + limit)), found: found.length, all: states }
    },
    states: all,
    find: async (id) => inspectEndpoint(reads, await stateOf(id), clock.now()),
    async add(body, by) {
      const { settings, headers, sharedKey, from } = parseNewEndpoint(body)
      checkUrl(settings, ports)
      const key = sharedKey ?? ports.makeKey()
      if (settings.signature === 'standard-webhooks') checkStandardKey(key)
      const id = await write.reserveEndpoint(clock.now())
      const action = orderOf(by, 'endpoint.added', { id, name: settings.name }, { url: withoutQuery(settings.url) })
      const sealed = { key: await vault.seal(key, id), headers: await sealAll(headers, id) }
      const state = done(await write.addEndpoint({ id, settings, ...sealed, from, nowMs: clock.now(), action }))
      ports.review()
      return { state: await viewEndpoint(reads, state), sharedKey: key, warnings: await warningsAbout(settings.filters) }
    },
    async change(id, body, by) {
      const { change, headers, sharedKey } = parseEndpointChange(body)
      checkUrl(change, ports)
      const state = await stateOf(id)
      const { endpoint } = state
      if ((change.signature ?? endpoint.signature) === 'standard-webhooks') await checkStandardKeys(state, sharedKey, vault)
      const url = change.url === undefined ? {} : { url: withoutQuery(change.url) }
      const names = Object.keys(headers)
      const detail = { change: { ...change, ...url, ...(names.length === 0 ? {} : { headers: names }) }, newKey: sharedKey !== undefined }
      return await edit(id, change, { sharedKey, headers, kind: 'rotate' }, orderOf(by, 'endpoint.changed', endpoint, detail))
    },
    async rotate(id, body, by) {
      const { sharedKey, isAtOnce } = parseKeyRotation(body)
      const { endpoint } = await stateOf(id)
      if (endpoint.signature === 'standard-webhooks' && typeof sharedKey === 'string') checkStandardKey(sharedKey)
      const action = orderOf(by, 'endpoint.key_replaced', endpoint, { at: isAtOnce ? 'now' : 'in 24 h' })
      return await edit(id, {}, { sharedKey, kind: isAtOnce ? 'replace' : 'rotate' }, action)
    },
    async retry(id, by) {
      const { endpoint } = await stateOf(id)
      const done = await write.retryEndpoint({ id, nowMs: clock.now(), action: orderOf(by, 'endpoint.retried', endpoint) })
      if (done === 'unknown') return unknown()
      if (done === 'disabled')
        throw new AppError('not_retryable', 'The endpoint is disabled: enable it, and everything that waits is sent.')
      ports.review()
      return await viewEndpoint(reads, await stateOf(id))
    },
    async remove(id, by) {
      const { endpoint } = await stateOf(id)
      done(await write.removeEndpoint({ id, nowMs: clock.now(), action: orderOf(by, 'endpoint.removed', endpoint) }))
      ports.review()
    },
    async test(id, by) {
      const state = await stateOf(id)
      const result = await sendTestEvent(state, ports)
      await write.recordAction(orderOf(by, 'endpoint.tested', state.endpoint, { result: result.kind }))
      return result
    },
  }
}

async function viewPage(
  reads: ManageEndpointsPorts['reads'],
  all: readonly EndpointState[],
  { cursor, limit, name }: Parameters<ManageEndpoints['list']>[0],
) {
  const after = all.filter(({ endpoint }) => Number(endpoint.id) > cursor && (name === null || endpoint.name === name))
  const states = after.slice(0, limit)
  return { endpoints: await viewEndpoints(reads, states), next: after.length > limit ? (states.at(-1)?.endpoint.id ?? null) : null }
}

/** An order for the audit trail. It contains the name of the endpoint, which may be removed or renamed later. */
function auditedOrder(
  order: Pick<OperatorAction, 'by' | 'action' | 'atMs'>,
  { id, name }: Pick<Endpoint, 'id' | 'name'>,
  detail: object,
): OperatorAction {
  return { ...order, target: { kind: 'endpoint', id }, detail: { endpoint: name, ...detail } }
}

interface SecretEdit {
  /** Values of fixed headers to set; null removes one. */
  readonly headers?: Readonly<Record<string, string | null>>
  /** Null: generate a new key; undefined: there is no new key. */
  readonly sharedKey: string | null | undefined
  readonly kind: 'rotate' | 'replace'
}

/** Sends a test event with the endpoint's present settings. Nothing is stored. */
async function sendTestEvent(state: EndpointState, { signerOf, sender, routeOf, clock }: ManageEndpointsPorts): Promise<AttemptResult> {
  const nowMs = clock.now()
  const signer = await signerOf(state, nowMs)
  if (signer === null) return { kind: 'failed', reason: 'forbidden', detail: 'NO_KEY', durationMs: 0, answerStart: new Uint8Array() }
  const body = encodeTestEvent(nowMs)
  const headers = signer.headers({ webhookId: `test_${nowMs}`, sequence: 0, previousSequence: 0, body }, nowMs)
  return await sender.send({ url: state.endpoint.url, headers: { ...headers, 'relay-test': 'true' }, body, route: routeOf(state) })
}

function checkUrl({ url }: { readonly url?: EndpointSettings['url'] | undefined }, { refuseUrl }: ManageEndpointsPorts): void {
  const refusal = url === undefined ? null : refuseUrl(url)
  if (refusal !== null) throw wrongInput('body', 'url', describeRefusal(refusal))
}

/** Checks what only the settings say about the names of fixed headers. */
function checkHeaders(names: readonly string[], { trustedHeader }: ManageEndpointsPorts): void {
  for (const name of names) {
    const problem = fixedHeaderProblem(name, trustedHeader())
    if (problem !== null) throw wrongInput('body', 'headers', `headers.${name} ${problem}.`)
  }
}

function checkStandardKey(key: string): void {
  if (!isStandardKey(key)) throw wrongInput('body', 'sharedKey', `sharedKey ${STANDARD_KEY_RULE}.`)
}

/** Checks the given key of an endpoint with `signature: standard-webhooks` or, if none is given, the ones that it has. */
async function checkStandardKeys({ endpoint, keys }: EndpointState, sharedKey: string | null | undefined, vault: Vault): Promise<void> {
  if (typeof sharedKey === 'string') checkStandardKey(sharedKey)
  const sealed = sharedKey !== undefined || keys === null ? [] : [keys.current, ...(keys.next === null ? [] : [keys.next.sealed])]
  const opened = await Promise.all(sealed.map((text) => vault.open(text, endpoint.id)))
  if (opened.some((key) => key !== null && !isStandardKey(key)))
    throw wrongInput(
      'body',
      'signature',
      `signature standard-webhooks needs another key: give a sharedKey with it, which ${STANDARD_KEY_RULE}.`,
    )
}

/** Messages for malformed URLs; other refusals come from the settings. */
const MALFORMED: Readonly<Record<string, string>> = {
  malformed: 'url must be a complete URL such as https://shop.internal/parcel-events.',
  scheme: 'url must begin with http:// or https://.',
  userinfo: 'url must not contain a user name or password.',
}

function describeRefusal(reason: string): string {
  return (
    MALFORMED[reason] ?? `url leads to an address that may not be sent to (${reason.replaceAll('_', ' ')}): see delivery.allowNetworks.`
  )
}

/** Hides the parameters of a URL, because one of them may be a credential. */
function withoutQuery(url: string): string {
  return url.replace(/\?.*$/s, '?...')
}

function unknown(): never {
  throw new AppError('not_found', 'There is no such endpoint.')
}

function done(edit: EndpointEdit): EndpointState {
  if (edit.kind === 'done') return edit.state
  if (edit.kind === 'unknown') return unknown()
  if (edit.kind === 'name_taken') throw new AppError('endpoint_exists', 'Another endpoint has this name: choose one that is not taken.')
  if (edit.kind === 'from_gone') throw new AppError('feed_gone', `from: ${explainStart(edit)}`, { facts: { oldestSequence: edit.oldest } })
  if (edit.kind === 'from_ahead') throw wrongInput('body', 'from', `from: ${explainStart(edit)}`)
  if (edit.kind === 'too_many_headers') throw wrongInput('body', 'headers', `headers: an endpoint may have at most ${FIXED_HEADERS_MAX}.`)
  if (edit.kind === 'not_rotating') {
    throw new AppError(
      'not_rotating',
      'No key is being replaced. To replace it at once, give "sharedKey" with "at": "now" (null: one is generated).',
    )
  }
  throw new AppError('endpoint_read_only', 'This endpoint is defined in the config file: change it there, and reload.')
}
