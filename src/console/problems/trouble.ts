import type { OperatorEvent, Trouble } from '../../core/domain/delivery/operator-event.ts'
import { isUnderstood } from '../../core/domain/history/observation.ts'
import type { InboxPush } from '../../core/domain/ingest/inbox.ts'

/** A trouble that begins. Operators are notified once, even if several replicas see it. */
export interface TroubleBegun {
  readonly subject: string
  readonly event: OperatorEvent
  readonly nowMs: number
}

/** What tells when the trouble began that it ends. */
type EndEvent = Extract<OperatorEvent, { readonly since: string }>

/** An event without what only the store knows: when the trouble began, and over restarts, how many pushes were refused and when no relay ran. */
type Untimed<Event> = Event extends OperatorEvent ? Omit<Event, 'since' | 'refused' | 'down'> : never

/** A trouble that is over. Operators are notified once, but only if they were notified of its beginning. */
export interface TroubleEnded {
  readonly subject: string
  readonly event: Untimed<EndEvent>
  readonly nowMs: number
}

/** The subjects of the troubles of the store's disk: below twice the limit, and below the limit. */
export const DISK_SUBJECTS = { low: 'disk', full: 'disk full' } as const

/** The prefix of the subject for a time at a full disk in which the relay did not run. `sinceMs`: when it was last seen; the subject ends with the time of its start. */
export const DOWN_SUBJECTS = 'down until '

/** A time in which the relay did not run, epoch milliseconds. A relay that was killed has run up to ten seconds longer. */
export interface Down {
  readonly lastSeenMs: number
  readonly startedMs: number
}

/** The prefix of the subject for a certificate that is about to expire. */
export const CERTIFICATE_SUBJECTS = 'certificate '

/** The prefix of the subject for pushes that were quarantined for one reason. `sinceMs`: when the first of them came. */
export const QUARANTINE_SUBJECTS = 'quarantine '
/** The prefix of the subject for the last event about quarantined pushes. `sinceMs` is the event's time, and `count` the number that it reported. */
export const TOLD_SUBJECTS = 'told of quarantine '

const HOUR_MS = 3_600_000
/** Operators are notified again at once when the count is this many times the last reported count. */
const GROWTH = 10

export interface QuarantineCount {
  readonly atMs: number
  readonly reason: string
  readonly count: number
}

/** The stored troubles about quarantined pushes, one for each reason. `told`: the last event about each reason (see `TOLD_SUBJECTS`). */
export interface KnownQuarantine {
  readonly troubles: readonly Trouble[]
  readonly told: readonly Trouble[]
}

/**
 * Decides which events to send about quarantined pushes. `counts`: the pushes since the last call. The first push of a reason is reported at once.
 * The next event comes when the count is ten times the last reported count, or after an hour if the count has grown. If it has not grown in
 * that hour, the trouble ends, and the next push counts as the first again.
 */
export function tellQuarantined(known: KnownQuarantine, counts: readonly QuarantineCount[], nowMs: number) {
  const events: OperatorEvent[] = []
  const kept: Trouble[] = []
  const over: string[] = []
  const byReason = Map.groupBy(counts, ({ reason }) => reason)
  const knownReasons = known.troubles.map(({ subject }) => subject.slice(QUARANTINE_SUBJECTS.length))
  for (const reason of new Set([...knownReasons, ...byReason.keys()])) {
    const [subject, toldSubject] = [QUARANTINE_SUBJECTS + reason, TOLD_SUBJECTS + reason]
    const fresh = byReason.get(reason) ?? []
    const before = known.troubles.find((one) => one.subject === subject)
    const told = known.told.find((one) => one.subject === toldSubject) ?? { sinceMs: before?.sinceMs ?? nowMs, count: 0 }
    const sinceMs = before?.sinceMs ?? Math.min(...fresh.map(({ atMs }) => atMs))
    const count = fresh.reduce((sum, one) => sum + one.count, before?.count ?? 0)
    // A clock that was set back must not stop the reports.
    const isHourOver = Math.abs(nowMs - told.sinceMs) >= HOUR_MS
    const hasGrown = count >= told.count * GROWTH || (isHourOver && count > told.count)
    if (hasGrown) {
      events.push({ event: 'pushes_quarantined', reason, count, since: instant(sinceMs) })
      kept.push({ subject, sinceMs, count }, { subject: toldSubject, sinceMs: nowMs, count })
    } else if (isHourOver) over.push(subject, toldSubject)
    else if (fresh.length > 0) kept.push({ subject, sinceMs, count })
  }
  return { events, kept, over }
}

export const NOT_UNDERSTOOD = 'no push is understood'
/** How many of the newest pushes decide whether pushes are understood. */
export const NEWEST_PUSHES = 10

export type NewestPush = Pick<InboxPush, 'state' | 'reason' | 'receivedAtMs'>

/**
 * Decides whether operators must be notified that no push is understood any more, or that pushes are understood again; null: neither. `newest`: the
 * newest pushes, the newest first. The trouble ends only when at least half of them are understood, so that it does not begin and end all the time.
 */
export function tellUnderstood(known: Trouble | undefined, newest: readonly NewestPush[]): OperatorEvent | null {
  if (newest.length < NEWEST_PUSHES) return null
  const wrong = newest.filter(isNotUnderstood)
  const [last, first] = [wrong[0], wrong.at(-1)]
  if (known !== undefined) {
    return wrong.length <= NEWEST_PUSHES / 2 ? { event: 'pushes_understood', since: instant(known.sinceMs) } : null
  }
  if (wrong.length < newest.length || last === undefined || first === undefined) return null
  return { event: 'pushes_not_understood', reason: last.reason ?? '', since: instant(first.receivedAtMs) }
}

function isNotUnderstood({ state, reason }: NewestPush): boolean {
  return (state === 'quarantined' || state === 'dismissed') && !isUnderstood(reason ?? '')
}

function instant(atMs: number): string {
  return new Date(atMs).toISOString()
}

const DAY_MS = 86_400_000

/** Operators hear of a certificate of the relay this long before it expires. */
export const EXPIRING_MS = 14 * DAY_MS

/** A certificate that the relay shows. */
export interface OwnCertificate {
  /** Who sees it, such as `public listener` or `endpoint shop`. */
  readonly shownBy: string
  /** The endpoint that sees it; null: those who connect to a listener see it. */
  readonly endpoint: string | null
  /** When it expires, epoch milliseconds. */
  readonly untilMs: number
}

export function daysLeft(untilMs: number, nowMs: number): number {
  return Math.floor((untilMs - nowMs) / DAY_MS)
}
