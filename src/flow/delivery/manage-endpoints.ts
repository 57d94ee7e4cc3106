import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type { EndpointChange, EndpointSettings } from '../../domain/delivery/endpoint.ts'
import { keysAt } from '../../domain/delivery/endpoint-keys.ts'
import { parseEndpointChange, parseKeyRotation, parseNewEndpoint } from '../../domain/delivery/endpoint-settings.ts'
import type { EndpointEdit, EndpointState, KeyChange } from '../../domain/delivery/endpoint-state.ts'
import { encodeTestEvent } from '../../domain/delivery/test-event.ts'
import { AppError } from '../../domain/errors.ts'
import { wrongInput } from '../../domain/read-input.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'
import type { DeliverySender, Vault } from './ports.ts'
import type { RouteOf, SignerOf } from './send-delivery.ts'
import { explainStart } from './start-position.tx.ts'

export interface ManageEndpointsPorts {
  readonly write: Pick<WriteSide, 'reserveEndpoint' | 'addEndpoint' | 'changeEndpoint' | 'removeEndpoint' | 'retryEndpoint'>
  readonly reads: Pick<ReadSide, 'listEndpoints'>
  readonly vault: Vault
  readonly sender: DeliverySender
  readonly signerOf: SignerOf
  readonly routeOf: RouteOf
  /** Why nothing may be sent to a URL; null: it may. */
  readonly refuseUrl: (url: string) => string | null
  /** 32 random bytes in Base64. */
  readonly makeKey: () => string
  readonly clock: Clock
  /** Endpoints are not what they were: nothing more may leave by what was known of them. */
  readonly review: () => void
}

/** An endpoint, and the key it was given just now: the only time it is told. */
export interface KeyedEndpoint {
  readonly state: EndpointState
  readonly sharedKey: string | null
}

/** What operators do with endpoints (CONTRACT, `/relay/endpoints`). Bodies are raw JSON values; ids raw path text, `not_found` if nobody's. */
export interface ManageEndpoints {
  /** In the order they were added; those after an id, so many at most. */
  list(page: { readonly cursor: number; readonly limit: number }): Promise<{
    readonly endpoints: readonly EndpointState[]
    /** The cursor of the next page; null: this is the last. */
    readonly next: string | null
  }>
  find(id: string): Promise<EndpointState>
  /** Throws `bad_request`, `endpoint_exists` and, when it is to start with what is no longer kept, `feed_gone`. */
  add(body: unknown): Promise<KeyedEndpoint>
  /** A new key begins to replace the old one, as with `rotate`. Throws `bad_request`, `endpoint_exists` and `endpoint_read_only`. */
  change(id: string, body: unknown): Promise<KeyedEndpoint>
  /**
   * Replaces the key: for 24 h both sign, then the new one alone; or ends that time now. Throws `bad_request`, `endpoint_read_only` and, if there
   * is nothing to end, `not_rotating`.
   */
  rotate(id: string, body: unknown): Promise<KeyedEndpoint>
  /** Everything that waits for it is due now. Throws `not_retryable`. */
  retry(id: string): Promise<EndpointState>
  remove(id: string): Promise<void>
  /** One attempt with an event that is none and is not recorded; says nothing about the endpoint's health. */
  test(id: string): Promise<AttemptResult>
}

export function createManageEndpoints(ports: ManageEndpointsPorts): ManageEndpoints {
  const { write, reads, vault, clock } = ports

  /** That of the operator is a setting, not an endpoint to be managed. */
  const all = async () => (await reads.listEndpoints()).filter(({ origin }) => origin !== 'operator').map(asItStands)

  /** What has run out meanwhile is not shown. */
  function asItStands(state: EndpointState): EndpointState {
    return state.keys === null ? state : { ...state, keys: keysAt(state.keys, clock.now()) }
  }

  async function find(id: string): Promise<EndpointState> {
    const state = (await all()).find(({ endpoint }) => endpoint.id === id)
    return state ?? unknown()
  }

  function checkUrl({ url }: { readonly url?: EndpointSettings['url'] | undefined }): void {
    const refusal = url === undefined ? null : ports.refuseUrl(url)
    if (refusal !== null) throw wrongInput('body', 'url', describeRefusal(refusal))
  }

  /** @param sharedKey null: another is to be made; undefined: there is no new one. */
  async function edit(id: string, change: EndpointChange, sharedKey: string | null | undefined, kind: 'rotate' | 'replace') {
    const newKey = sharedKey === null ? ports.makeKey() : sharedKey
    const none: KeyChange | null = kind === 'replace' ? { kind: 'end' } : null
    const key = newKey === undefined ? none : { kind, sealed: await vault.seal(newKey, id) }
    const state = done(await write.changeEndpoint({ id, change, key, nowMs: clock.now() }))
    ports.review()
    return { state: asItStands(state), sharedKey: newKey ?? null }
  }

  return {
    async list({ cursor, limit }) {
      const after = (await all()).filter(({ endpoint }) => Number(endpoint.id) > cursor)
      const endpoints = after.slice(0, limit)
      return { endpoints, next: after.length > limit ? (endpoints.at(-1)?.endpoint.id ?? null) : null }
    },
    find,
    async add(body) {
      const { settings, sharedKey, from } = parseNewEndpoint(body)
      checkUrl(settings)
      const key = sharedKey ?? ports.makeKey()
      const id = await write.reserveEndpoint(clock.now())
      const state = done(await write.addEndpoint({ id, settings, key: await vault.seal(key, id), from }))
      ports.review()
      return { state, sharedKey: key }
    },
    async change(id, body) {
      const { change, sharedKey } = parseEndpointChange(body)
      checkUrl(change)
      await find(id)
      return await edit(id, change, sharedKey, 'rotate')
    },
    async rotate(id, body) {
      const { sharedKey, isAtOnce } = parseKeyRotation(body)
      await find(id)
      return await edit(id, {}, sharedKey, isAtOnce ? 'replace' : 'rotate')
    },
    async retry(id) {
      await find(id)
      const done = await write.retryEndpoint({ id, nowMs: clock.now() })
      if (done === 'unknown') return unknown()
      if (done === 'disabled')
        throw new AppError('not_retryable', 'The endpoint is disabled: enable it, and everything that waits is sent.')
      ports.review()
      return await find(id)
    },
    async remove(id) {
      await find(id)
      done(await write.removeEndpoint({ id, nowMs: clock.now() }))
      ports.review()
    },
    test: async (id) => sendTestEvent(await find(id), ports),
  }
}

/** Sends an event that is none, as the endpoint stands: nothing of it is kept. */
async function sendTestEvent(state: EndpointState, { signerOf, sender, routeOf, clock }: ManageEndpointsPorts): Promise<AttemptResult> {
  const nowMs = clock.now()
  const signer = await signerOf(state, nowMs)
  if (signer === null) return { kind: 'failed', reason: 'forbidden', detail: 'NO_KEY', durationMs: 0, answerStart: new Uint8Array() }
  const body = encodeTestEvent(nowMs)
  const headers = signer.headers({ webhookId: `test_${nowMs}`, sequence: 0, previousSequence: 0, body }, nowMs)
  return await sender.send({ url: state.endpoint.url, headers: { ...headers, 'relay-test': 'true' }, body, route: routeOf(state) })
}

/** How a URL is written needs words of its own; where it leads is a matter of the settings. */
const MALFORMED: Readonly<Record<string, string>> = {
  malformed: 'url must be a whole URL such as https://shop.internal/parcel-events.',
  scheme: 'url must begin with http:// or https://.',
  userinfo: 'url must hold no user name and no password.',
}

function describeRefusal(reason: string): string {
  return MALFORMED[reason] ?? `url leads to where nothing may be sent (${reason.replaceAll('_', ' ')}): see delivery.allowNetworks.`
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
  if (edit.kind === 'not_rotating') {
    throw new AppError(
      'not_rotating',
      'No key is being replaced. To replace it at once, give "sharedKey" with "at": "now" (null: one is made).',
    )
  }
  throw new AppError('endpoint_read_only', 'The config file says what this endpoint is: change it there, and reload.')
}
