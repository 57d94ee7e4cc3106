import { createDeliverySigner, type DeliverySigner } from '../domain/delivery-request.ts'
import { digest } from '../domain/digest.ts'
import type { EndpointState, Log, Memory, Vault } from './ports.ts'
import type { SignerOf } from './relay.ts'

export interface EndpointSignersPorts {
  readonly vault: Vault
  /** The key the config file names for an endpoint; undefined: none. */
  readonly configuredKey: (state: EndpointState) => string | undefined
  /** Signers made before: opening a key and making a signer of it costs more than signing. */
  readonly made: Memory<DeliverySigner>
  readonly log: Log
}

/** What signs for an endpoint: the key of the config file, or those that are kept sealed in the store. */
export function createEndpointSigners({ vault, configuredKey, made, log }: EndpointSignersPorts): SignerOf {
  const unreadable = new Set<string>()

  async function keysOf(state: EndpointState, nowMs: number): Promise<readonly string[]> {
    const { endpoint, keys } = state
    const configured = configuredKey(state)
    if (keys === null) return configured === undefined ? [] : [configured]
    const { current, previous } = keys
    const sealed = [current, ...(previous === null || previous.untilMs <= nowMs ? [] : [previous.sealed])]
    const opened = await Promise.all(sealed.map((text) => vault.open(text, endpoint.id)))
    const [first, second] = opened
    if (first === undefined || first === null) return []
    return second === undefined || second === null ? [first] : [first, second]
  }

  /** The same state has the same keys, until the key that is being replaced runs out. */
  const known = new WeakMap<EndpointState, { readonly signer: DeliverySigner; readonly untilMs: number }>()

  return (state, nowMs) => {
    const found = known.get(state)
    return found !== undefined && nowMs < found.untilMs ? found.signer : learn(state, nowMs)
  }

  async function learn(state: EndpointState, nowMs: number): Promise<DeliverySigner | null> {
    const signer = await signerOf(state, nowMs)
    const previousUntilMs = state.keys?.previous?.untilMs ?? 0
    if (signer !== null) known.set(state, { signer, untilMs: previousUntilMs > nowMs ? previousUntilMs : Number.POSITIVE_INFINITY })
    return signer
  }

  async function signerOf(state: EndpointState, nowMs: number): Promise<DeliverySigner | null> {
    const { endpoint, keys } = state
    const previous = keys?.previous ?? null
    const isRotating = previous !== null && previous.untilMs > nowMs
    const name = digest(JSON.stringify([endpoint.id, endpoint.signature, keys?.current ?? configuredKey(state), isRotating]))
    const ready = made.get(name)
    if (ready !== undefined) return ready
    const texts = await keysOf(state, nowMs)
    if (texts.length === 0) {
      if (!unreadable.has(name)) {
        log.error({ endpoint: endpoint.name }, 'the key of an endpoint cannot be had: is the key that encrypts the keys still the same?')
      }
      unreadable.add(name)
      return null
    }
    const signer = createDeliverySigner(texts, endpoint.signature)
    made.set(name, signer)
    return signer
  }
}
