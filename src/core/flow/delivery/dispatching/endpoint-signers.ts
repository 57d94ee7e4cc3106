import { createDeliverySigner, type DeliverySigner, type SigningKeys } from '../../../domain/delivery/delivery-request.ts'
import { type FixedHeaders, keysAt, keysChangeAtMs } from '../../../domain/delivery/endpoint-keys.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { digest } from '../../../domain/digest.ts'
import type { Memory, Vault } from '../../ports.ts'
import type { Relay } from '../../relay.ts'
import type { SignerOf } from './send-delivery.ts'

export interface EndpointSignersPorts extends Pick<Relay, 'log'> {
  readonly vault: Vault
  /** Returns the secrets that the config file gives an endpoint; undefined: it gives none. */
  readonly configured: (state: EndpointState) => ConfiguredSecrets | undefined
  /** The relay's own name and version, as a header. */
  readonly userAgent: string
  /** A cache of signers, because opening a key and preparing it costs more than signing. */
  readonly made: Memory<DeliverySigner>
}

export interface ConfiguredSecrets {
  readonly sharedKey: string
  readonly headers: FixedHeaders
}

interface EndpointSecrets {
  readonly keys: SigningKeys
  readonly headers: FixedHeaders
}

/** Finds signers. The keys of an endpoint are in the config file, or sealed in the store. */
export function createEndpointSigners({ vault, configured, userAgent, made, log }: EndpointSignersPorts): SignerOf {
  const unreadable = new Set<string>()

  async function secretsOf(state: EndpointState, nowMs: number): Promise<EndpointSecrets | null> {
    const { endpoint } = state
    if (state.keys === null) {
      const known = configured(state)
      return known === undefined ? null : { keys: { current: known.sharedKey }, headers: known.headers }
    }
    const { current, next, headers: sealedHeaders = {} } = keysAt(state.keys, nowMs)
    const open = async (sealed: string | undefined) => (sealed === undefined ? null : await vault.open(sealed, endpoint.id))
    const [opened, openedNext] = await Promise.all([open(current), open(next?.sealed)])
    const headers: Record<string, string> = {}
    for (const [name, value] of await Promise.all(
      Object.entries(sealedHeaders).map(async ([name, sealed]) => [name, await open(sealed)] as const),
    )) {
      // If a header cannot be opened, send nothing, because the receiver would refuse an event without the header.
      if (value === null) return null
      headers[name] = value
    }
    if (opened === null) return null
    return { keys: { current: opened, next: openedNext ?? undefined }, headers }
  }

  /** Signers by state object. The keys of one object change only when a rotation of keys ends. */
  const known = new WeakMap<EndpointState, { readonly signer: DeliverySigner; readonly untilMs: number }>()

  return (state, nowMs) => {
    const found = known.get(state)
    if (found !== undefined && nowMs < found.untilMs) return found.signer
    const name = nameOf(state, nowMs)
    const ready = made.get(name)
    return ready === undefined ? loadSigner(state, nowMs, name) : remember(state, nowMs, ready)
  }

  function nameOf(state: EndpointState, nowMs: number): string {
    const { endpoint, keys } = state
    const inUse = keys === null ? configured(state) : keysAt(keys, nowMs)
    return digest(JSON.stringify([endpoint.id, endpoint.signature, inUse]))
  }

  function remember(state: EndpointState, nowMs: number, signer: DeliverySigner): DeliverySigner {
    const untilMs = state.keys === null ? Number.POSITIVE_INFINITY : keysChangeAtMs(keysAt(state.keys, nowMs))
    known.set(state, { signer, untilMs })
    return signer
  }

  async function loadSigner(state: EndpointState, nowMs: number, name: string): Promise<DeliverySigner | null> {
    const { endpoint } = state
    const secrets = await secretsOf(state, nowMs)
    if (secrets === null) {
      if (!unreadable.has(name)) {
        log.error(
          { endpoint: endpoint.name },
          'the key of an endpoint cannot be decrypted: does secrets.atRestKeys still have the key that encrypted it?',
        )
      }
      unreadable.add(name)
      return null
    }
    const signer = createDeliverySigner(secrets.keys, endpoint.signature, { userAgent, fixed: secrets.headers })
    made.set(name, signer)
    return remember(state, nowMs, signer)
  }
}
