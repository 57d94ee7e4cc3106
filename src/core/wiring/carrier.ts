import { createCarrier, type RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { Config } from '../config/config.ts'
import { readCertificates } from '../config/named-file.ts'
import type { OtherClocks } from '../domain/admin/clock-record.ts'
import type { CallSpender, QuestionEnd } from '../domain/admin/tally.ts'
import type { CarrierMemory } from '../domain/polling/call-budget.ts'
import { findCarrierOutage } from '../flow/polling/upstream.ts'
import { systemClock } from '../runtime/system-clock.ts'
import type { Relay } from './relay.ts'

type CarrierParts = Pick<Relay, 'write' | 'reads' | 'clock' | 'shared' | 'log' | 'settings' | 'vault'> & {
  /** Called for each call to the carrier. */
  readonly onCall: (spender: CallSpender) => void
  /** Called with the end of each question to the carrier. */
  readonly onPolled: (end: QuestionEnd) => void
}

/** Opens the carrier's client. Returns it with `memory`: what the last run saved about the carrier; null: nothing was saved. */
export async function openCarrier(
  config: Config,
  { write, reads, clock, shared, log, settings, vault, onCall, onPolled }: CarrierParts,
): Promise<{ readonly carrier: RemoteCarrier; readonly memory: CarrierMemory | null }> {
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
    password: () => settings().upstream.password.reveal(),
    ...(shared === null ? {} : { shared: { ...shared.carrier, vault } }),
    onCall,
    onPolled,
    answeredBefore: () => reads.answeredParcels(),
    isErased: async (identifier) => (await write.erasedAtMs({ identifier, nowMs: clock.now() })) !== null,
    clock,
    log,
    ca,
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
  })
  carrier.resume(await findCarrierOutage({ reads }).catch(() => null))
  return { carrier, memory }
}

/**
 * Reads the carrier's `caFile` again. If the file cannot be used, the relay keeps the previous authority, and the log says why. Returns the
 * problems found.
 */
export function renewAuthority(config: Config, { carrier, log }: Pick<Relay, 'carrier' | 'log'>): readonly string[] {
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

/** Only a store on a server has another clock than this machine. */
export function otherClocksOf({ clock, shared, carrier }: Pick<Relay, 'clock' | 'shared' | 'carrier'>): OtherClocks {
  return { carrierAheadMs: carrier.aheadMs(), machineAheadMs: shared === null ? null : systemClock.now() - clock.now() }
}
