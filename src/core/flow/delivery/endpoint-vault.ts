import { createDeliverySigner, type DeliverySigner, type SigningKeys } from '../../domain/delivery/delivery-request.ts'
import { type FixedHeaders, keysAt, keysChangeAtMs, type LostKeys } from '../../domain/delivery/endpoint-keys.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { AppError, lacksRoom, storeUnavailable, systemCode } from '../../domain/errors.ts'
import { reasonOfCode } from '../../domain/system-reason.ts'
import { digest } from '../../domain/text.ts'
import type { Memory, Vault } from '../ports.ts'
import type { Reads, Relay } from '../relay-part.ts'
import type { SignerOf } from './dispatching/send-delivery.ts'

export interface EndpointKeysPorts extends Pick<Relay, 'log'>, Reads<'listEndpoints'> {
  readonly vault: Vault
}

export interface EndpointKeysOptions {
  /** The file with the key that encrypts the keys of endpoints; null: the config gives that key. */
  readonly keyFile: () => string | null
}

/** Notices when the key that encrypts the keys of endpoints is lost. The keys of endpoints are then lost, too. */
export type EndpointKeys = ReturnType<typeof createEndpointKeys>

const RETRY_AFTER_MS = 60_000

export function createEndpointKeys({ vault, reads, log }: EndpointKeysPorts, { keyFile }: EndpointKeysOptions) {
  const where = () => keyFile() ?? 'secrets.atRestKeys'
  let reported: LostKeys | null = null

  async function findLost(): Promise<{ readonly sealed: number; readonly lost: LostKeys | null }> {
    const sealed = (await reads.listEndpoints()).filter(isSealed)
    const opened = await Promise.all(sealed.map(({ endpoint, keys }) => vault.open(keys.current, endpoint.id)))
    const endpoints = opened.filter((key) => key === null).length
    return { sealed: sealed.length, lost: endpoints === 0 ? null : { where: where(), endpoints } }
  }

  async function seal(key: string, endpointId: string): Promise<string> {
    if (keyFile() === null) return await vault.seal(key, endpointId)
    const { sealed, lost } = await findLost()
    if (sealed > 0 && lost?.endpoints === sealed) throw unusable(where())
    try {
      return await vault.seal(key, endpointId)
    } catch (cause) {
      throw unusable(where(), cause)
    }
  }

  /** Tries to open every sealed key; null: all of them open. */
  async function check(): Promise<LostKeys | null> {
    const { lost } = await findLost()
    if (lost !== null && reported === null)
      log.error(
        { ...lost },
        `the keys of endpoints cannot be opened: nothing is sent to these endpoints, and everything for them waits. Restore ${lost.where} as it was`,
      )
    if (lost === null && reported !== null) log.info({}, 'the keys of endpoints can be opened again')
    reported = lost
    return lost
  }

  return {
    /**
     * Seals and opens the keys of endpoints. With a key file, `seal` throws `storage_unavailable` if the file's key opens none of the keys that
     * were sealed before. So nothing is sealed with a wrong or a new key file.
     */
    vault: { ...vault, seal },
    check,
    /** Returns the result of the last check. If keys were lost, checks again. */
    lost: async (): Promise<LostKeys | null> => (reported === null ? null : await check()),
  }
}

function isSealed(state: EndpointState): state is EndpointState & { readonly keys: NonNullable<EndpointState['keys']> } {
  return state.keys !== null
}

function unusable(where: string, cause?: unknown): AppError {
  if (lacksRoom(cause)) return storeUnavailable(cause, RETRY_AFTER_MS)
  const code = systemCode(cause)
  if (code !== null)
    return new AppError('storage_unavailable', `${where} cannot be read or written now: ${reasonOfCode(code)}.`, {
      cause,
      retryAfterMs: RETRY_AFTER_MS,
    })
  const message = `The key in ${where}, with which the keys of endpoints are encrypted, is lost or damaged. Restore it; or list another in secrets.atRestKeys, restart, and give each endpoint a new key.`
  return new AppError('storage_unavailable', message, { cause, retryAfterMs: RETRY_AFTER_MS })
}

interface EndpointSignersPorts extends Pick<Relay, 'log'> {
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
