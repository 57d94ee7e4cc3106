import { createCarrier, type RemoteCarrier } from '../carrier/carrier-client.ts'
import type { Config } from '../config/config.ts'
import { readCertificates } from '../config/named-file.ts'
import type { CarrierMemory } from '../domain/polling/carrier-memory.ts'
import type { Vault } from '../flow/delivery/ports.ts'
import type { SharedCarrier } from '../flow/polling/ports.ts'
import type { Log } from '../flow/ports.ts'
import type { WriteSide } from '../flow/write-side.ts'
import { systemClock } from '../runtime/system-clock.ts'

export interface CarrierPorts {
  readonly write: Pick<WriteSide, 'carrierMemory' | 'rememberCarrier'>
  readonly log: Log
  /** The one in the latest config. */
  readonly password: () => string
  /** What replicas share; null: this relay is alone, and goes on from the ledger of its last run. */
  readonly shared: SharedCarrier | null
  readonly vault: Vault
}

/** The carrier's client. */
export async function openCarrier(
  config: Config,
  { write, log, password, shared, vault }: CarrierPorts,
): Promise<{ readonly carrier: RemoteCarrier; readonly memory: CarrierMemory | null }> {
  const memory = await write.carrierMemory().catch((err: unknown) => {
    log.warn({ err }, 'cannot read the call ledger of the last run')
    return null
  })
  const { proxy, ...upstream } = config.upstream
  const carrier = createCarrier({
    ...upstream,
    memory,
    remember: (left) => write.rememberCarrier(left),
    password,
    ...(shared === null ? {} : { shared: { ...shared, vault } }),
    clock: systemClock,
    log,
    ...(upstream.caFile === null ? {} : { ca: readCertificates('upstream.caFile', upstream.caFile) }),
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
  })
  return { carrier, memory }
}
