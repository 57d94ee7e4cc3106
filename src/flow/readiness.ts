import type { PushHealth } from '../domain/push-health.ts'
import type { Carrier, CarrierState, ReadSide, WriteSide } from './ports.ts'

/** What `/readyz` tells: whether pushes can be taken and answers be read, why not, and what else an operator should know. */
export interface Readiness {
  readonly ready: boolean
  /** Why not; empty when ready. */
  readonly reasons: readonly string[]
  /** Trouble that does not stop the relay from serving, such as the carrier's. */
  readonly notes?: Readonly<Record<string, unknown>>
}

export interface ReadinessPorts {
  readonly reads: Pick<ReadSide, 'ping'>
  readonly write: Pick<WriteSide, 'probe'>
  readonly carrier: Pick<Carrier, 'state'>
  readonly disk: { readonly isShort: () => boolean }
  readonly pushHealth: () => PushHealth
  /** Resolves when what became of every push until now was told here. */
  readonly caughtUp: () => Promise<unknown>
}

/**
 * Whether the relay can take pushes and answer reads. The carrier's trouble is told, and no reason not to be ready: a relay whose carrier
 * is down still serves (CONTRACT, `/readyz`).
 */
export function createReadiness({ reads, write, carrier, disk, pushHealth, caughtUp }: ReadinessPorts) {
  let failure: string | null = null
  return {
    storeWorks() {
      failure = null
    },
    storeFails(error: unknown) {
      failure = describe(error)
    },
    async read(): Promise<Readiness> {
      const reasons: string[] = []
      await caughtUp()
      if (disk.isShort()) reasons.push('disk_nearly_full: less than limits.freeSpaceMin is free where the store is')
      // After a failure nobody may be pushing any more: only a try can tell that the store works again.
      if (failure !== null) {
        try {
          await write.probe()
          failure = null
        } catch (error) {
          reasons.push(`storage_unavailable: pushes cannot be stored (${describe(error)})`)
        }
      }
      await reads.ping().catch((error: unknown) => reasons.push(`storage_unavailable: answers cannot be read (${describe(error)})`))
      const { credentials, breaker, lastAnswerAtMs, lastFailure } = carrier.state()
      const notes = {
        upstream: {
          state: credentials === 'refused' ? 'upstream_auth' : isFailing(carrier.state()) ? lastFailure?.reason : 'ok',
          credentials,
          breaker: breaker.state,
          lastAnswerAt: lastAnswerAtMs === null ? null : new Date(lastAnswerAtMs).toISOString(),
          lastFailureAt: lastFailure === null ? null : new Date(lastFailure.atMs).toISOString(),
          pushes: pushHealth(),
        },
      }
      return { ready: reasons.length === 0, reasons, notes }
    },
  }
}

function isFailing({ lastAnswerAtMs, lastFailure }: CarrierState): boolean {
  return lastFailure !== null && (lastAnswerAtMs === null || lastFailure.atMs > lastAnswerAtMs)
}

/** The code of a store's error and no more: messages name paths. */
function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  return /SQLITE_[A-Z_]+/.exec(message)?.[0] ?? 'unknown cause'
}
