import { DISK_FULL } from '../../domain/admin/disk-room.ts'
import { bytesText } from '../../domain/amounts.ts'
import type { LostKeys } from '../../domain/delivery/endpoint-keys.ts'
import { systemCode } from '../../domain/errors.ts'
import type { MisdirectedPath } from '../../domain/ingest/refused-spells.ts'
import { type CarrierState, carrierStanding, failureCode } from '../../domain/polling/carrier-answer.ts'
import type { PushHealth } from '../../domain/polling/push-health.ts'
import { reasonOfCode } from '../../domain/system-reason.ts'
import type { Carrier } from '../ports.ts'
import type { Reads } from '../relay-part.ts'

/** The answer of `/readyz`: whether the relay can take pushes and answer reads. */
export interface Readiness {
  readonly ready: boolean
  /** Why it is not ready; empty: it is ready. */
  readonly reasons: readonly string[]
  /** Facts that do not decide whether the relay is ready, such as the state of the carrier. */
  readonly notes?: Readonly<Record<string, unknown>>
}

/**
 * What a commit writes. After a commit has failed, the relay is not ready until a commit of the same kind succeeds, because a store that is
 * partly damaged may still accept the other kind.
 */
type CommitKind = 'pushes' | 'polls'

interface LostFile {
  readonly name: string
  readonly fate: 'gone' | 'replaced'
}

export interface ReadinessPorts extends Reads<'ping'> {
  readonly carrier: Pick<Carrier, 'state'>
  readonly disk: {
    readonly trouble: () => 'short' | 'lost' | 'moving' | null
    readonly state: () => { readonly freeBytes: number; readonly lost: LostFile | null }
  }
  readonly pushHealth: () => PushHealth
  /** The wrong paths to which something was posted, the most recent first. */
  readonly misdirected: () => Promise<readonly MisdirectedPath[]>
  /** The keys of endpoints that cannot be opened; null: every key can be opened. */
  readonly lostKeys: () => Promise<LostKeys | null>
  /** Resolves when this process knows the outcomes of all pushes so far. */
  readonly caughtUp: () => Promise<unknown>
}

/**
 * Creates the readiness check. The carrier's trouble is reported but does not count, because a relay whose carrier is down still serves
 * (CONTRACT, `/readyz`).
 */
export function createReadiness({ reads, carrier, disk, pushHealth, misdirected, lostKeys, caughtUp }: ReadinessPorts) {
  const failures = new Map<CommitKind, string>()
  return {
    storeWorks(kind: CommitKind) {
      failures.delete(kind)
    },
    storeFails(kind: CommitKind, error: unknown) {
      failures.set(kind, describe(error))
    },
    /** Whether no push can be taken now. */
    refusesPushes: () => disk.trouble() !== null || failures.has('pushes'),
    async read(): Promise<Readiness> {
      const reasons: string[] = []
      await caughtUp()
      if (disk.trouble() === 'short')
        reasons.push(`${DISK_FULL}: ${bytesText(disk.state().freeBytes)} are free where the store is, less than limits.freeSpaceMin`)
      if (disk.trouble() === 'moving') reasons.push('store_moving: another store is about to take the place of this one')
      if (disk.trouble() === 'lost') reasons.push(describeLost(disk.state().lost))
      for (const [kind, failure] of failures) reasons.push(`storage_unavailable: ${kind} cannot be stored (${failure})`)
      await reads.ping().catch((error: unknown) => reasons.push(`storage_unavailable: answers cannot be read (${describe(error)})`))
      const { credentials, breaker, lastAnswerAtMs, lastFailure } = carrier.state()
      const lost = await lostKeys().catch(() => null)
      const notes = {
        ...(lost === null ? {} : { endpointKeys: { state: 'lost', ...lost } }),
        upstream: {
          state: describeCarrier(carrier.state()),
          credentials,
          breaker: breaker.state,
          lastAnswerAt: lastAnswerAtMs === null ? null : new Date(lastAnswerAtMs).toISOString(),
          lastFailure: lastFailure === null ? null : failureCode(lastFailure),
          lastFailureAt: lastFailure === null ? null : new Date(lastFailure.atMs).toISOString(),
          pushes: pushHealth(),
          misdirected: (await misdirected())
            .filter(({ isSigned }) => isSigned)
            .map(({ path, count, lastAtMs }) => ({ path, count, lastAt: new Date(lastAtMs).toISOString() })),
        },
      }
      return { ready: reasons.length === 0, reasons, notes }
    },
  }
}

function describeCarrier(state: CarrierState): 'ok' | 'upstream_auth' | ReturnType<typeof failureCode> {
  const { kind } = carrierStanding(state)
  if (kind === 'refused') return 'upstream_auth'
  if (kind !== 'failing' && kind !== 'troubled') return 'ok'
  return state.lastFailure === null ? 'resting' : failureCode(state.lastFailure)
}

function describeLost(lost: LostFile | null): string {
  const what = lost === null ? 'a file of the store was removed' : `${lost.name} was ${lost.fate === 'gone' ? 'deleted' : 'replaced'}`
  return `store_lost: ${what} while the relay runs; put it back, or restore a backup`
}

/** Describes an error by its code alone, because its message may name paths and addresses. */
function describe(error: unknown): string {
  const code = codeOf(error)
  return code === null ? 'for an unknown reason' : reasonOfCode(code)
}

function codeOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  return systemCode(error) ?? /SQLITE_[A-Z_]+/.exec(error.message)?.[0] ?? codeOf(error.cause)
}
