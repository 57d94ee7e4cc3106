import { firstLine } from '../received-text.ts'
import { type AttemptResult, isOwnFailure } from './delivery.ts'

/** The name of the endpoint for operator events, in the log and in lists of deliveries. */
export const OPERATOR_NAME = '(operator)'

/** An endpoint as operator events name it. */
interface Named {
  readonly id: string
  readonly name: string
}

/** The transaction that settles an attempt counts what waited no further. Such a count means this many or more. */
export const WAITED_COUNTED_MAX = 10_000

/** A failed attempt as operator events tell it. `status` null: there was no answer, for the `reason`. */
export interface ToldFailure {
  readonly status: number | null
  readonly reason: string | null
  /** The first line of the answer, with `…` for each word that has a digit; empty: there was none. */
  readonly answer: string
}

/** A word with a digit may name a parcel, and an event stays when the parcel is erased. */
const WORDS_WITH_DIGITS = /[^\s"'(),;:=]*\d[^\s"'(),;:=]*/g

/** Tells a failure to operators. Null: the attempt was accepted, or the relay itself made it fail. */
export function tellFailure(result: AttemptResult): ToldFailure | null {
  if (result.kind === 'accepted' || isOwnFailure(result)) return null
  const answer = firstLine(result.answerStart).replace(WORDS_WITH_DIGITS, '…')
  return result.kind === 'failed' ? { status: null, reason: result.reason, answer: '' } : { status: result.status, reason: null, answer }
}

/**
 * An event for operators. They are notified once for each change of state (DOMAIN 7.4). It is never about a parcel. Times are ISO instants.
 */
export type OperatorEvent =
  /** For `operator.failingAfter` everything at the endpoint has failed. `since`: its first failure. `failure`: its last; null: not known. */
  | { readonly event: 'endpoint_failing'; readonly endpoint: Named; readonly since: string; readonly failure: ToldFailure | null }
  /** Operators know that the endpoint was failing. Now it accepts deliveries again. */
  /** `waited`: how many of its events waited then, counted up to `WAITED_COUNTED_MAX`. */
  | {
      readonly event: 'endpoint_recovered'
      readonly endpoint: Named
      readonly since: string
      readonly downForMs: number
      readonly waited: number
    }
  /**
   * The endpoint was disabled by its own answers, or because no config names it any more (`unnamed`). An operator's order makes no event,
   * because the audit trail has it.
   */
  | { readonly event: 'endpoint_disabled'; readonly endpoint: Named; readonly because: 'gone' | 'failing' | 'unnamed' }
  /** No config has named the endpoint for `delivery.removeAfter`. */
  | { readonly event: 'endpoint_removed'; readonly endpoint: Named }
  | { readonly event: 'credentials_refused' }
  | { readonly event: 'credentials_accepted'; readonly since: string }
  /** The carrier has failed so often in a row that polls pause. */
  | { readonly event: 'carrier_failing'; readonly reason: string | null }
  | { readonly event: 'carrier_recovered'; readonly since: string }
  /**
   * `pushes_silent`: the carrier scans but pushes nothing. `pushes_lossy`: pushes arrive, but too many are lost. `pushes_trusted`: after
   * that, pushes arrive and few are lost. `lastPushAt`: when the last push with news came.
   */
  | { readonly event: 'pushes_silent' | 'pushes_lossy' | 'pushes_trusted'; readonly lastPushAt: string | null }
  /**
   * This many pushes were quarantined for a reason since the first of them came. The first one is reported at once. While more come, they are
   * reported again when there are ten times as many, and otherwise once an hour.
   */
  | { readonly event: 'pushes_quarantined'; readonly reason: string; readonly count: number; readonly since: string }
  /** The newest pushes are all in quarantine, so no push is understood. `reason`: of the newest one. `since`: when the first of them came. */
  | { readonly event: 'pushes_not_understood'; readonly reason: string; readonly since: string }
  /** After that, most of the newest pushes are understood again. */
  | { readonly event: 'pushes_understood'; readonly since: string }
  /** `disk_low`: less than twice `freeBytesMin` is free. `disk_full`: less than `freeBytesMin` is free, so pushes are refused. */
  | { readonly event: 'disk_low' | 'disk_full'; readonly freeBytes: number; readonly freeBytesMin: number }
  /**
   * Pushes are taken again. They were refused from `since` until `until`. `refused`: how many the relay has answered with 503 in that time,
   * as far as it knows: a restart in between forgets the ones before.
   */
  | { readonly event: 'disk_usable'; readonly freeBytes: number; readonly since: string; readonly until: string; readonly refused: number }
  /** The disk is not low any more either. */
  | { readonly event: 'disk_recovered'; readonly freeBytes: number; readonly since: string }
  /** `changed`: the settings that a reload applied. `problems`: files that could not be used, so the earlier ones stay in use. */
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
   * The store was restored from a backup while no relay ran. The feed continues after `nextSequence`. `delivered`: how many deliveries were
   * accepted after the backup; their events may come again under new ids. Null: not known.
   */
  | {
      readonly event: 'store_restored'
      readonly backup: string
      readonly madeAt: string | null
      readonly lastSequence: number
      readonly nextSequence: number
      readonly delivered: number | null
    }
  /** A backup failed. The one before had not failed. */
  | { readonly event: 'backup_failed'; readonly backup: string; readonly reason: string }
  | { readonly event: 'backup_recovered'; readonly backup: string; readonly since: string }
  | {
      readonly event: 'job_ended'
      readonly job: { readonly id: string; readonly kind: string }
      readonly state: string
      readonly done: number
      readonly failure: string | null
    }

  /** For 30 days something could not be removed although its time was over, because it is undelivered, in quarantine, or still needed. */
  | { readonly event: 'retention_held'; readonly held: Readonly<Record<string, number>>; readonly since: string }
  /** It was held back for `retention.held`, and was then given up. `endpoints`: the ids of endpoints that were never sent it. */
  | { readonly event: 'retention_gave_up'; readonly givenUp: Readonly<Record<string, number>>; readonly endpoints: readonly string[] }
  /** An operator asked whether events arrive. It is sent and not kept. */
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
  'reloaded',
  'reload_failed',
  'certificate_expiring',
  'store_restored',
  'backup_failed',
  'backup_recovered',
  'job_ended',
  'retention_held',
  'retention_gave_up',
] as const satisfies readonly OperatorEvent['event'][]

export function encodeOperatorEvent(event: OperatorEvent, nowMs: number): Uint8Array {
  return Buffer.from(JSON.stringify({ ...event, at: new Date(nowMs).toISOString() }))
}

/** A stored event for operators. */
export interface ToldEvent {
  readonly id: number
  readonly atMs: number
  readonly event: string
  /** Its other members. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** Where a page of a list by time begins: before this row. */
export interface TimeCursor {
  readonly atMs: number
  readonly id: number
}

/**
 * Selects a page of events, the newest first. Null: any event, from the newest on. `fromMs` (inclusive) and `toMs` (exclusive) are epoch
 * milliseconds.
 */
export interface OperatorEventQuery {
  readonly event: OperatorEvent['event'] | null
  readonly fromMs: number | null
  readonly toMs: number | null
  readonly before: TimeCursor | null
  readonly limit: number
}
