import type { LostKeys } from '../../domain/delivery/endpoint-keys.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { AppError, lacksRoom, storeUnavailable, systemCode } from '../../domain/errors.ts'
import { reasonOfCode } from '../../domain/system-reason.ts'
import type { Vault } from '../ports.ts'
import type { Reads, Relay } from '../relay.ts'

export interface EndpointKeysPorts extends Pick<Relay, 'log'>, Reads<'listEndpoints'> {
  readonly vault: Vault
}

export interface EndpointKeysOptions {
  /** The file with the key that encrypts the keys of endpoints; null: the config gives that key. */
  readonly keyFile: () => string | null
}

/** Notices when the key that encrypts the keys of endpoints is lost. The keys of endpoints are then lost, too. */
export interface EndpointKeys {
  /**
   * Seals and opens the keys of endpoints. With a key file, `seal` throws `storage_unavailable` if the file's key opens none of the keys that
   * were sealed before. So nothing is sealed with a wrong or a new key file.
   */
  readonly vault: Vault
  /** Tries to open every sealed key; null: all of them open. */
  check(): Promise<LostKeys | null>
  /** Returns the result of the last check. If keys were lost, checks again. */
  lost(): Promise<LostKeys | null>
}

const RETRY_AFTER_MS = 60_000

export function createEndpointKeys({ vault, reads, log }: EndpointKeysPorts, { keyFile }: EndpointKeysOptions): EndpointKeys {
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

  return { vault: { ...vault, seal }, check, lost: async () => (reported === null ? null : await check()) }
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
