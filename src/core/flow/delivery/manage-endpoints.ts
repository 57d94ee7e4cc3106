import { type ActionName, type Actor, isShownKey, type OperatorAction, shownKey, shownTest } from '../../domain/admin/operator-action.ts'
import { encodeTestEvent } from '../../domain/delivery/delivery-request.ts'
import {
  FIXED_HEADERS_MAX,
  fixedHeaderProblem,
  isStandardKey,
  STANDARD_KEY_RULE,
  sealedTexts,
} from '../../domain/delivery/endpoint-keys.ts'
import {
  FILTERS,
  ofEach,
  parseEndpointChange,
  parseKeyRotation,
  parseNewEndpoint,
  type Setting,
} from '../../domain/delivery/endpoint-settings.ts'
import type {
  Endpoint,
  EndpointChange,
  EndpointEdit,
  EndpointFilters,
  EndpointState,
  KeyChange,
} from '../../domain/delivery/endpoint-state.ts'
import { AppError } from '../../domain/errors.ts'
import { wrongInput } from '../../domain/read-input.ts'
import { nearestName } from '../../domain/text.ts'
import type { ReadSide } from '../../store/read-store.ts'
import type { DeliverySender, Vault } from '../ports.ts'
import type { Relay, Writes } from '../relay-part.ts'
import { type RouteOf, recordTest, type SignerOf, sendTest } from './dispatching/send-delivery.ts'
import { explainStart } from './edit-endpoints.tx.ts'
import { createEndpointQueries, type EndpointQueriesPorts, type EndpointView, unknownEndpoint, viewEndpoint } from './endpoint-queries.ts'

export interface ManageEndpointsPorts
  extends EndpointRules,
    Pick<Relay, 'clock' | 'log'>,
    Writes<'reserveEndpoint' | 'addEndpoint' | 'changeEndpoint' | 'removeEndpoint' | 'retryEndpoint' | 'recordAction'> {
  readonly reads: EndpointQueriesPorts['reads'] & Pick<ReadSide, 'listStatuses' | 'listEventValues'>
  readonly vault: Vault
  readonly sender: DeliverySender
  readonly signerOf: SignerOf
  readonly routeOf: RouteOf
  readonly keyOriginOf: EndpointQueriesPorts['keyOriginOf']
  /** 32 random bytes in Base64. */
  readonly makeKey: () => string
  /** Called when the endpoints have changed, so that nothing is sent with their old settings. */
  readonly review: () => void
}

/** An endpoint after an operator's change. `sharedKey`: its new key, which no later answer shows; null: the key has not changed. */
export interface KeyedEndpoint {
  readonly state: EndpointView
  readonly sharedKey: string | null
  readonly warnings: readonly FilterWarning[]
}

/**
 * Lets operators manage endpoints (CONTRACT, `/relay/endpoints`). `body`: a raw JSON value. `id`: raw path text. If no endpoint has this id,
 * each function throws `not_found`.
 */
export type ManageEndpoints = ReturnType<typeof createManageEndpoints>

export function createManageEndpoints(ports: ManageEndpointsPorts) {
  const { write, reads, vault, clock } = ports
  const warningsAbout = createFilterWarnings(reads)

  const { stateOf, asItStands, namedAs, ...queries } = createEndpointQueries(ports)

  const orderOf = (by: Actor, action: ActionName, endpoint: Pick<Endpoint, 'id' | 'name'>, detail: object = {}) =>
    auditedOrder({ by, action, atMs: clock.now() }, endpoint, detail)

  async function edit(id: string, change: EndpointChange, { sharedKey, kind, headers = {} }: SecretEdit, action: OperatorAction) {
    const newKey = sharedKey === null ? ports.makeKey() : sharedKey
    const none: KeyChange | null = kind === 'replace' ? { kind: 'end' } : null
    const key = newKey === undefined ? none : { kind, sealed: await vault.seal(newKey, id) }
    const sealed = await sealHeaders(headers, id, vault)
    const order = key === null || key.kind === 'end' ? action : { ...action, shown: shownKey(key.sealed) }
    const state = done(await write.changeEndpoint({ id, change, key, headers: sealed, nowMs: clock.now(), action: order }))
    ports.review()
    const warnings = change.filters === undefined ? [] : await warningsAbout(change.filters)
    return { state: await viewEndpoint(reads, asItStands(state), clock.now()), sharedKey: newKey ?? null, warnings }
  }

  return {
    ...queries,
    /** Throws `bad_request`, `endpoint_exists`, and `feed_gone` if it is to start with events that are no longer kept. */
    async add(body: unknown, by: Actor): Promise<KeyedEndpoint> {
      const { settings, headers, sharedKey, from } = parseNewEndpoint(body)
      checkUrl(settings, ports)
      checkHeaders(headers, ports)
      const key = sharedKey ?? ports.makeKey()
      if (settings.signature === 'standard-webhooks') checkStandardKey(key)
      const id = await write.reserveEndpoint(clock.now())
      const sealed = { key: await vault.seal(key, id), headers: await sealHeaders(headers, id, vault) }
      const order = orderOf(by, 'endpoint.added', { id, name: settings.name }, { url: withoutQuery(settings.url) })
      const action = { ...order, shown: shownKey(sealed.key) }
      const state = done(await write.addEndpoint({ id, settings, ...sealed, from, nowMs: clock.now(), action }))
      ports.review()
      return { state: await viewEndpoint(reads, state, clock.now()), sharedKey: key, warnings: await warningsAbout(settings.filters) }
    },
    /** A new key begins to replace the old one, as with `rotate`. Throws `bad_request`, `endpoint_exists` and `endpoint_read_only`. */
    async change(id: string, body: unknown, by: Actor) {
      const { change, headers, sharedKey } = parseEndpointChange(body)
      checkUrl(change, ports)
      checkHeaders(headers, ports)
      const state = await stateOf(id)
      const { endpoint } = state
      if ((change.signature ?? endpoint.signature) === 'standard-webhooks') await checkStandardKeys(state, sharedKey, vault)
      const url = change.url === undefined ? {} : { url: withoutQuery(change.url) }
      const names = Object.keys(headers)
      const detail = { change: { ...change, ...url, ...(names.length === 0 ? {} : { headers: names }) }, newKey: sharedKey !== undefined }
      return await edit(id, change, { sharedKey, headers, kind: 'rotate' }, orderOf(by, 'endpoint.changed', endpoint, detail))
    },
    /**
     * Replaces the key: both keys sign for 24 h, then only the new one. The body can also end these 24 h now. Throws `bad_request`,
     * `endpoint_read_only`, and `not_rotating` if no key is being replaced.
     */
    async rotate(id: string, body: unknown, by: Actor) {
      const { sharedKey, isAtOnce } = parseKeyRotation(body)
      const { endpoint } = await stateOf(id)
      if (endpoint.signature === 'standard-webhooks' && typeof sharedKey === 'string') checkStandardKey(sharedKey)
      const action = orderOf(by, 'endpoint.key_replaced', endpoint, { at: isAtOnce ? 'now' : 'in 24 h' })
      return await edit(id, {}, { sharedKey, kind: isAtOnce ? 'replace' : 'rotate' }, action)
    },
    /** Makes all deliveries that wait for the endpoint due now. Throws `not_retryable`. */
    async retry(id: string, by: Actor) {
      const { endpoint } = await stateOf(id)
      const done = await write.retryEndpoint({ id, nowMs: clock.now(), action: orderOf(by, 'endpoint.retried', endpoint) })
      if (done === 'unknown') return unknownEndpoint()
      if (done === 'disabled')
        throw new AppError('not_retryable', 'The endpoint is disabled: enable it, and everything that waits is sent.')
      ports.review()
      return await viewEndpoint(reads, await stateOf(id), clock.now())
    },
    /**
     * Returns an endpoint with the key that an order set, for a form that is sent again. `shown`: see `OperatorAction`. `sharedKey` null: the
     * key has been replaced since.
     */
    async keyed(id: string, shown: unknown): Promise<KeyedEndpoint> {
      const state = await stateOf(id)
      const [sharedKey, warnings] = await Promise.all([shownAgain(state, shown, vault), warningsAbout(state.endpoint.filters)])
      return { state: await viewEndpoint(reads, state, clock.now()), sharedKey, warnings }
    },
    async remove(id: string, by: Actor) {
      const kind = await write.removeEndpoint({ id, nowMs: clock.now(), action: orderOf(by, 'endpoint.removed', await namedAs(id)) })
      if (kind !== 'done') refuse({ kind })
      ports.review()
    },
    /** Makes one attempt with a test event. The attempt is not recorded, and does not change the endpoint's health. */
    async test(id: string, by: Actor) {
      const state = await stateOf(id)
      const result = await sendTest(state, encodeTestEvent(clock.now()), ports)
      const order = orderOf(by, 'endpoint.tested', state.endpoint, { result: result.kind })
      await recordTest({ ...order, shown: shownTest(result) }, ports)
      return result
    },
  }
}

/** Opens the key that an answer showed before. Null: the endpoint has it no longer. */
async function shownAgain({ endpoint, keys }: EndpointState, shown: unknown, vault: Vault): Promise<string | null> {
  const sealed = keys === null ? undefined : sealedTexts(keys).find((text) => isShownKey(shown, text))
  return sealed === undefined ? null : await vault.open(sealed, endpoint.id)
}

/** Puts the endpoint's name into the audit record, because the endpoint may be removed or renamed later. */
function auditedOrder(
  order: Pick<OperatorAction, 'by' | 'action' | 'atMs'>,
  { id, name }: Pick<Endpoint, 'id' | 'name'>,
  detail: object,
): OperatorAction {
  return { ...order, target: { kind: 'endpoint', id }, detail: { endpoint: name, ...detail } }
}

interface SecretEdit {
  /** Values of fixed headers to set. A header with the value null is removed. */
  readonly headers?: Readonly<Record<string, string | null>>
  /** Null: generate a new key; undefined: there is no new key. */
  readonly sharedKey: string | null | undefined
  readonly kind: 'rotate' | 'replace'
}

/** Hides the query of a URL, because it may contain a credential. */
function withoutQuery(url: string): string {
  return url.replace(/\?.*$/s, '?...')
}

function done(edit: EndpointEdit): EndpointState {
  return edit.kind === 'done' ? edit.state : refuse(edit)
}

function refuse(edit: Exclude<EndpointEdit, { kind: 'done' }>): never {
  if (edit.kind === 'unknown') return unknownEndpoint()
  if (edit.kind === 'name_taken') throw new AppError('endpoint_exists', 'Another endpoint has this name: choose one that is not taken.')
  if (edit.kind === 'name_damaged') throw new AppError('endpoint_exists', explainDamaged(edit.damagedId))
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

function explainDamaged(id: string): string {
  return `An endpoint whose row in the store is damaged has this name. Choose another name; or remove it, which cancels what waits for it: "parcel-relay endpoints remove ${id} --yes" (DELETE /relay/endpoints/{id}); or define an endpoint of this name in the config and reload, which takes over what waits.`
}

/** If events have had more different values than this, the carrier seems to invent values all the time. Then an unknown value is no mistake. */
const VALUES_MAX = 500

/** A setting that is valid but probably a mistake. */
export interface FilterWarning {
  readonly filter: string
  /** A clause without a full stop. */
  readonly message: string
}

/**
 * Warns about each value of a filter that no event has had so far, and names the most similar known value. Such a filter is accepted,
 * because the carrier may use any value. But an unknown value is probably a typing error, and the endpoint would then get nothing.
 */
export function createFilterWarnings(
  reads: Pick<ReadSide, 'listStatuses' | 'listEventValues'>,
): (filters: EndpointFilters) => Promise<readonly FilterWarning[]> {
  return async (filters) => {
    const wanted = new Map<string, unknown>(Object.entries(filters).filter(([, values]) => Array.isArray(values)))
    if (wanted.size === 0) return []
    const statuses = (await reads.listStatuses()).map((value) => ({ member: 'status', value }))
    const seen = Map.groupBy([...statuses, ...(await reads.listEventValues())], ({ member }) => member)
    const warnings = ofEach(FILTERS, (row, name) => warningsAbout(row, name, wanted.get(name), seen.get(name)))
    return Object.values(warnings).flat()
  }
}

export function describeWarning({ filter, message }: FilterWarning): string {
  return `filters.${filter}: ${message}`
}

function warningsAbout(
  row: Setting,
  filter: string,
  wanted: unknown,
  seen: readonly { readonly value: string }[] = [],
): readonly FilterWarning[] {
  if (row.kind !== 'values' || !Array.isArray(wanted)) return []
  const known = [...new Set([...row.known, ...seen.map(({ value }) => value)])]
  if (known.length === 0 || known.length > VALUES_MAX) return []
  return wanted.map(String).flatMap((value) => {
    if (known.includes(value)) return []
    const near = nearestName(value, known)
    const unseen = `no ${filter === 'status' ? 'parcel' : 'event'} has had the ${row.label.toLowerCase()}`
    return [{ filter, message: `${unseen} "${value}" so far${near === null ? '' : `; did you mean ${near}?`}` }]
  })
}

/** The settings that limit endpoints. */
interface EndpointRules {
  /** Returns why nothing may be sent to a URL; null: events may be sent to it. */
  readonly refuseUrl: (url: string) => string | null
  /** The header in which a proxy names the person to the portal (`portal.trustedHeader`); null: none is configured. */
  readonly trustedHeader: () => string | null
}

/** Throws `bad_request` if nothing may be sent to the URL. */
function checkUrl({ url }: { readonly url?: string | undefined }, { refuseUrl }: EndpointRules): void {
  const refusal = url === undefined ? null : refuseUrl(url)
  if (refusal !== null) throw wrongInput('body', 'url', describeRefusal(refusal))
}

/** Checks the names of fixed headers against the settings of the relay. Throws `bad_request`. */
function checkHeaders(headers: Readonly<Record<string, unknown>>, { trustedHeader }: EndpointRules): void {
  for (const name of Object.keys(headers)) {
    const problem = fixedHeaderProblem(name, trustedHeader())
    if (problem !== null) throw wrongInput('body', 'headers', `headers.${name} ${problem}.`)
  }
}

/** Seals the values of fixed headers for an endpoint; null stays null. */
async function sealHeaders<Value extends string | null>(
  headers: Readonly<Record<string, Value>>,
  endpointId: string,
  vault: Pick<Vault, 'seal'>,
) {
  const seal = async ([name, value]: readonly [string, Value]) =>
    [name, value === null ? value : await vault.seal(value, endpointId)] as const
  return Object.fromEntries(await Promise.all(Object.entries(headers).map(seal)))
}

/** Throws `bad_request` if the libraries of Standard Webhooks would refuse the key. */
function checkStandardKey(key: string): void {
  if (!isStandardKey(key)) throw wrongInput('body', 'sharedKey', `sharedKey ${STANDARD_KEY_RULE}.`)
}

/** Checks the keys of an endpoint with `signature: standard-webhooks`: the given key or, if none is given, the present keys. */
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
