import { createCarrier, type RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { Config } from '../config/config.ts'
import { readCertificates } from '../config/named-file.ts'
import type { CallSpender } from '../domain/admin/tally.ts'
import type { CarrierMemory } from '../domain/polling/carrier-memory.ts'
import type { TokenVault } from '../flow/polling/ports.ts'
import type { Log } from '../flow/ports.ts'
import type { Storage } from './storage/opened-storage.ts'

export interface CarrierPorts {
  /** A relay that does not share its store continues with the call counts of its last run. */
  readonly storage: Pick<Storage, 'write' | 'reads' | 'clock' | 'shared'>
  readonly log: Log
  /** Returns the password of the latest config. */
  readonly password: () => string
  readonly vault: TokenVault
  readonly onCall: (spender: CallSpender) => void
}

/** Opens the carrier's client. Returns it with `memory`: what the last run saved about the carrier; null: nothing was saved. */
export async function openCarrier(
  config: Config,
  { storage, log, password, vault, onCall }: CarrierPorts,
): Promise<{ readonly carrier: RemoteCarrier; readonly memory: CarrierMemory | null }> {
  const { write, reads, clock, shared } = storage
  const memory = await write.carrierMemory().catch((err: unknown) => {
    log.warn({ err }, 'cannot read the counts of calls to the carrier that the last run saved')
    return null
  })
  const { proxy, ...upstream } = config.upstream
  const ca = authorityOf(config)
  const carrier = createCarrier({
    ...upstream,
    memory,
    remember: (left) => write.rememberCarrier(left),
    password,
    ...(shared === null ? {} : { shared: { ...shared.carrier, vault } }),
    onCall,
    answeredBefore: () => reads.answeredParcels(),
    isErased: async (identifier) => (await write.erasedAtMs({ identifier, nowMs: clock.now() })) !== null,
    clock,
    log,
    ca,
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
  })
  return { carrier, memory }
}

/**
 * Reads the carrier's `caFile` again. If the file cannot be used, the relay keeps the previous authority, and the log says why. Returns the
 * problems found.
 */
export function renewAuthority(
  config: Config,
  { carrier, log }: { readonly carrier: RemoteCarrier; readonly log: Log },
): readonly string[] {
  try {
    carrier.replaceAuthority(authorityOf(config))
    return []
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    log.error({ problem }, 'the authority of the carrier cannot be used; the previous one stays in use')
    return [problem]
  }
}

/** Reads the carrier's private authority (PEM), if the config names one. If it cannot be used, throws an error that names the setting. */
export function authorityOf({ upstream: { caFile } }: Config): string | undefined {
  return caFile === null ? undefined : readCertificates('upstream.caFile', caFile)
}

/** Returns the configured languages, with the language of polls first. */
export function languagesOf(config: Config): readonly [string, ...string[]] {
  const [first, ...others] = config.upstream.languages
  if (first === undefined) throw new RangeError('at least one language must be configured')
  return [first, ...others]
}
