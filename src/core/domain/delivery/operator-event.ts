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

/** The events of the core and the console, and the members of each besides its name. Times are ISO instants. */
export interface CoreOperatorEvents {
  /** All attempts have failed for `operator.failingAfter`. `since`: the first failure. `failure`: the latest; null: not known. */
  endpoint_failing: { readonly endpoint: Named; readonly since: string; readonly failure: ToldFailure | null }
  /**
   * The endpoint accepts deliveries again. Sent only if operators were notified that it was failing. `waited`: how many events waited for the
   * endpoint then, counted up to `WAITED_COUNTED_MAX`.
   */
  endpoint_recovered: { readonly endpoint: Named; readonly since: string; readonly downForMs: number; readonly waited: number }
  /**
   * The endpoint was disabled because of its answers, or because no config names it any more (`unnamed`). There is no event
   * if an operator disables an endpoint, because the audit trail records that.
   */
  endpoint_disabled: { readonly endpoint: Named; readonly because: 'gone' | 'failing' | 'unnamed' }
  /** The endpoint was removed, because no config has named it for `delivery.removeAfter`. */
  endpoint_removed: { readonly endpoint: Named }
  credentials_refused: Record<never, never>
  credentials_accepted: { readonly since: string }
  /** Polls pause, because the carrier has answered no question since `since`. `reason`: why the last call failed. `status`: of the reply to it, if that is why. */
  carrier_failing: { readonly reason: string | null; readonly status: number | null; readonly since: string }
  carrier_recovered: { readonly since: string }
  /** Parcels are scanned but no push arrives. `lastPushAt`: when the last push with news came; null: not known. */
  pushes_silent: { readonly lastPushAt: string | null }
  /** Pushes arrive, but too many are lost. */
  pushes_lossy: { readonly lastPushAt: string | null }
  /** Pushes arrive again and few are lost. */
  pushes_trusted: { readonly lastPushAt: string | null }
  /** `count` pushes were quarantined for `reason` since `since` (see `tellQuarantined`). */
  pushes_quarantined: { readonly reason: string; readonly count: number; readonly since: string }
  /** None of the newest pushes was understood. `reason`: why the newest one was not understood. `since`: when the oldest of these pushes came. */
  pushes_not_understood: { readonly reason: string; readonly since: string }
  /** At least half of the newest pushes are understood again. */
  pushes_understood: { readonly since: string }
  /** Less than twice `freeBytesMin` is free. */
  disk_low: { readonly freeBytes: number; readonly freeBytesMin: number }
  /** Less than `freeBytesMin` is free, so pushes are refused. */
  disk_full: { readonly freeBytes: number; readonly freeBytesMin: number }
  /**
   * Pushes are accepted again. They were refused from `since` until `until`. `refused`: how many were answered with 503 in that time, over
   * restarts. `down`: when the relay did not run in that time, so that what was pushed got no answer and is not counted.
   */
  disk_usable: {
    readonly freeBytes: number
    readonly since: string
    readonly until: string
    readonly refused: number
    readonly down: readonly { readonly lastSeenAt: string; readonly startedAt: string }[]
  }
  /** At least twice `freeBytesMin` is free again. */
  disk_recovered: { readonly freeBytes: number; readonly since: string }
  /**
   * The clock is doubted, so retention removes nothing. `because`: it has `jumped` ahead, or it contradicts the clock of the `carrier` or the
   * `machine`. `aheadMs`: how far it seems to be ahead; negative: behind.
   */
  clock_doubted: { readonly because: ClockDoubt['because']; readonly aheadMs: number }
  clock_trusted: { readonly since: string }
  /** `changed`: the settings that a reload applied. `problems`: the files that could not be used. Their earlier content stays in use. */
  reloaded: {
    readonly replica: string
    readonly changed: readonly string[]
    readonly needsRestart: readonly string[]
    readonly problems: readonly string[]
  }
  reload_failed: { readonly replica: string; readonly problems: readonly string[] }
  certificate_expiring: { readonly listener: string; readonly expiresAt: string; readonly replica: string }
  /** An operator asked for this event, to test whether events arrive. It is sent but not stored. */
  test: Record<never, never>
}

/** Every event by its name. Each wing adds its own to this interface, and describes them in what it offers. */
export interface OperatorEvents extends CoreOperatorEvents {}

/** An event for operators, who are notified once of each change of state (DOMAIN 7.4). It never names a parcel. */
export type OperatorEvent = { [Name in keyof OperatorEvents]: { readonly event: Name } & OperatorEvents[Name] }[keyof OperatorEvents]

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
  readonly event: string | null
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
