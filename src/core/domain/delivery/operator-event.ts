import type { ClockDoubt } from '../admin/clock-record.ts'
import { unnamedLine } from '../text.ts'
import { type AttemptResult, isOwnFailure } from './delivery.ts'

/** The name of the endpoint for operator events, in the log and in lists of deliveries. */
export const OPERATOR_NAME = '(operator)'

interface Named {
  readonly id: string
  readonly name: string
}

/** Waiting events are counted only up to this number, to keep a transaction short. A count of this number means "this many or more". */
export const WAITED_COUNTED_MAX = 10_000

/** A failed attempt as operator events report it. `status` null: there was no answer, because of `reason`. */
export interface ToldFailure {
  readonly status: number | null
  readonly reason: string | null
  /** The first line of the answer, with `…` in place of each word that has a digit; empty: the answer had no text. */
  readonly answer: string
}

/** Describes the failure of an attempt for operators. Null: the attempt was accepted, or failed because of the relay itself. */
export function tellFailure(result: AttemptResult): ToldFailure | null {
  if (result.kind === 'accepted' || isOwnFailure(result)) return null
  const answer = unnamedLine(result.answerStart)
  return result.kind === 'failed' ? { status: null, reason: result.reason, answer: '' } : { status: result.status, reason: null, answer }
}

/** An event for operators, who are notified once of each change of state (DOMAIN 7.4). It never names a parcel. Times are ISO instants. */
export type OperatorEvent =
  /** All attempts have failed for `operator.failingAfter`. `since`: the first failure. `failure`: the latest; null: not known. */
  | { readonly event: 'endpoint_failing'; readonly endpoint: Named; readonly since: string; readonly failure: ToldFailure | null }
  /**
   * The endpoint accepts deliveries again. Sent only if operators were notified that it was failing. `waited`: how many events waited for the
   * endpoint then, counted up to `WAITED_COUNTED_MAX`.
   */
  | {
      readonly event: 'endpoint_recovered'
      readonly endpoint: Named
      readonly since: string
      readonly downForMs: number
      readonly waited: number
    }
  /**
   * The endpoint was disabled because of its answers, or because no config names it any more (`unnamed`). There is no event
   * if an operator disables an endpoint, because the audit trail records that.
   */
  | { readonly event: 'endpoint_disabled'; readonly endpoint: Named; readonly because: 'gone' | 'failing' | 'unnamed' }
  /** The endpoint was removed, because no config has named it for `delivery.removeAfter`. */
  | { readonly event: 'endpoint_removed'; readonly endpoint: Named }
  | { readonly event: 'credentials_refused' }
  | { readonly event: 'credentials_accepted'; readonly since: string }
  /** Polls pause, because the carrier has answered no question since `since`. `reason`: why the last call failed. `status`: of the reply to it, if that is why. */
  | { readonly event: 'carrier_failing'; readonly reason: string | null; readonly status: number | null; readonly since: string }
  | { readonly event: 'carrier_recovered'; readonly since: string }
  /**
   * `pushes_silent`: parcels are scanned but no push arrives. `pushes_lossy`: pushes arrive, but too many are lost. `pushes_trusted`:
   * pushes arrive again and few are lost. `lastPushAt`: when the last push with news came; null: not known.
   */
  | { readonly event: 'pushes_silent' | 'pushes_lossy' | 'pushes_trusted'; readonly lastPushAt: string | null }
  /** `count` pushes were quarantined for `reason` since `since` (see `tellQuarantined`). */
  | { readonly event: 'pushes_quarantined'; readonly reason: string; readonly count: number; readonly since: string }
  /** None of the newest pushes was understood. `reason`: why the newest one was not understood. `since`: when the oldest of these pushes came. */
  | { readonly event: 'pushes_not_understood'; readonly reason: string; readonly since: string }
  /** At least half of the newest pushes are understood again. */
  | { readonly event: 'pushes_understood'; readonly since: string }
  /** `disk_low`: less than twice `freeBytesMin` is free. `disk_full`: less than `freeBytesMin` is free, so pushes are refused. */
  | { readonly event: 'disk_low' | 'disk_full'; readonly freeBytes: number; readonly freeBytesMin: number }
  /**
   * Pushes are accepted again. They were refused from `since` until `until`. `refused`: how many were answered with 503 in that time, over
   * restarts. `down`: when the relay did not run in that time, so that what was pushed got no answer and is not counted.
   */
  | {
      readonly event: 'disk_usable'
      readonly freeBytes: number
      readonly since: string
      readonly until: string
      readonly refused: number
      readonly down: readonly { readonly lastSeenAt: string; readonly startedAt: string }[]
    }
  /** At least twice `freeBytesMin` is free again. */
  | { readonly event: 'disk_recovered'; readonly freeBytes: number; readonly since: string }
  /**
   * The clock is doubted, so retention removes nothing. `because`: it has `jumped` ahead, or it contradicts the clock of the `carrier` or the
   * `machine`. `aheadMs`: how far it seems to be ahead; negative: behind.
   */
  | { readonly event: 'clock_doubted'; readonly because: ClockDoubt['because']; readonly aheadMs: number }
  | { readonly event: 'clock_trusted'; readonly since: string }
  /** `changed`: the settings that a reload applied. `problems`: the files that could not be used. Their earlier content stays in use. */
  | {
      readonly event: 'reloaded'
      readonly replica: string
      readonly changed: readonly string[]
      readonly needsRestart: readonly string[]
      readonly problems: readonly string[]
    }
  | { readonly event: 'reload_failed'; readonly replica: string; readonly problems: readonly string[] }
  | { readonly event: 'certificate_expiring'; readonly listener: string; readonly expiresAt: string; readonly replica: string }
  /**
   * The store was restored from a backup while no relay ran. The feed continues after `nextSequence`. `delivered`: how many deliveries
   * endpoints accepted after the backup was made; null: not known. Endpoints may receive their events again, under new ids.
   */
  | {
      readonly event: 'store_restored'
      readonly backup: string
      readonly madeAt: string | null
      readonly lastSequence: number
      readonly nextSequence: number
      readonly delivered: number | null
    }
  /** A backup failed after one that had succeeded. Further failures in a row cause no event. */
  | { readonly event: 'backup_failed'; readonly backup: string; readonly reason: string }
  | { readonly event: 'backup_recovered'; readonly backup: string; readonly since: string }
  | {
      readonly event: 'job_ended'
      readonly job: { readonly id: string; readonly kind: string }
      readonly state: string
      readonly done: number
      readonly failure: string | null
    }

  /** Retention should have deleted this data at least 30 days ago, but could not: it is undelivered, in quarantine or still needed. */
  | { readonly event: 'retention_held'; readonly held: Readonly<Record<string, number>>; readonly since: string }
  /** Retention deleted undelivered, quarantined or needed data older than `retention.held`. `endpoints`: the ids of endpoints that did not get it. */
  | { readonly event: 'retention_gave_up'; readonly givenUp: Readonly<Record<string, number>>; readonly endpoints: readonly string[] }
  /** Watchdogs tell nothing, because the relay neither gets pushes nor answers of the carrier. `held`: of how many parcels. */
  | { readonly event: 'watchdogs_held'; readonly held: number; readonly since: string }
  | { readonly event: 'watchdogs_resumed'; readonly since: string }
  /** An operator asked for this event, to test whether events arrive. It is sent but not stored. */
  | { readonly event: 'test' }

export const OPERATOR_EVENTS = [
  'endpoint_failing',
  'endpoint_recovered',
  'endpoint_disabled',
  'endpoint_removed',
  'credentials_refused',
  'credentials_accepted',
  'carrier_failing',
  'carrier_recovered',
  'pushes_silent',
  'pushes_lossy',
  'pushes_trusted',
  'pushes_quarantined',
  'pushes_not_understood',
  'pushes_understood',
  'disk_low',
  'disk_full',
  'disk_usable',
  'disk_recovered',
  'clock_doubted',
  'clock_trusted',
  'reloaded',
  'reload_failed',
  'certificate_expiring',
  'store_restored',
  'backup_failed',
  'backup_recovered',
  'job_ended',
  'retention_held',
  'retention_gave_up',
  'watchdogs_held',
  'watchdogs_resumed',
] as const satisfies readonly OperatorEvent['event'][]

export function encodeOperatorEvent(event: OperatorEvent, nowMs: number): Uint8Array {
  return Buffer.from(JSON.stringify({ ...event, at: new Date(nowMs).toISOString() }))
}

/** A stored event for operators. */
export interface ToldEvent {
  readonly id: number
  readonly atMs: number
  readonly event: string
  /** The members of the event other than its name and its time. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** The last row of a page of a list that is ordered by time and id. The next page begins after this row. */
export interface TimeCursor {
  readonly atMs: number
  readonly id: number
}

/**
 * Selects a page of operator events, newest first. `event` null: events of any name. `fromMs` (inclusive) and `toMs` (exclusive): epoch
 * milliseconds; null: no bound. `before` null: the first page.
 */
export interface OperatorEventQuery {
  readonly event: OperatorEvent['event'] | null
  readonly fromMs: number | null
  readonly toMs: number | null
  readonly before: TimeCursor | null
  readonly limit: number
}

/** A request to a chat or notification service. */
export interface OperatorMessage {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A problem that lasts, and of which operators were notified. */
export interface Trouble {
  /** The name of the trouble, such as `carrier`, `disk full`, a certificate, or a reason of quarantine. */
  readonly subject: string
  /** When the trouble began, epoch milliseconds. */
  readonly sinceMs: number
  /** The number of pushes that were quarantined for one reason; 0: the trouble is not about a quarantine. */
  readonly count: number
}
