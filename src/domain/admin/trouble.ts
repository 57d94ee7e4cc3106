import type { OperatorEvent } from '../delivery/operator-event.ts'
import { isUnderstood } from '../history/observation.ts'
import type { InboxPush } from '../ingest/inbox.ts'

/** A problem that lasts and that operators know of. */
export interface Trouble {
  /** Its name: `carrier`, `credentials`, `disk`, `disk full`, a certificate, or a reason of quarantine. */
  readonly subject: string
  /** When it began, epoch milliseconds. */
  readonly sinceMs: number
  /** For a reason of quarantine: how many have come. For others 0. */
  readonly count: number
}

/** A trouble that begins. Operators are notified once, whichever replica sees it. */
export interface TroubleBegun {
  readonly subject: string
  readonly event: OperatorEvent
  readonly nowMs: number
}

/** The events that end a trouble. */
export type EndEvent = Extract<
  OperatorEvent,
  { readonly event: 'credentials_accepted' | 'carrier_recovered' | 'disk_usable' | 'disk_recovered' }
>

/** The same event without its start, which the store knows. */
type Untimed<Event> = Event extends OperatorEvent ? Omit<Event, 'since'> : never

/** A trouble that is over. Operators are notified once, but only if they know that it began. */
export interface TroubleEnded {
  readonly subject: string
  readonly event: Untimed<EndEvent>
  readonly nowMs: number
}

/** The prefix of the subjects of certificates that are about to expire. */
export const CERTIFICATE_SUBJECTS = 'certificate '

/** The prefix of the subjects of quarantine, one for each reason: when its first push came, and how many have come since. */
export const QUARANTINE_SUBJECTS = 'quarantine '
/** The prefix of the subjects that hold, for each reason, when operators were last told, and what count. */
export const TOLD_SUBJECTS = 'told of quarantine '

const HOUR_MS = 3_600_000
/** A new report goes out at once when there are this many times as many quarantined pushes as in the last one. */
const GROWTH = 10

export interface QuarantineCount {
  readonly atMs: number
  readonly reason: string
  readonly count: number
}

/** The quarantined pushes on record: for each reason the trouble itself, and the last report of it to operators. */
export interface KnownQuarantine {
  readonly troubles: readonly Trouble[]
  readonly told: readonly Trouble[]
}

/** The events for operators about quarantined pushes, and the state for the next look. `over`: subjects that are over. */
export interface QuarantineNews {
  readonly events: readonly OperatorEvent[]
  readonly kept: readonly Trouble[]
  readonly over: readonly string[]
}

/**
 * Decides which events to send about pushes that were quarantined since the last look. Each event says how many have come so far, and since
 * when. The first push of a reason is reported at once. Growth is reported when there are ten times as many as were last reported, so that a
 * flood is noticed, and otherwise once an hour. After an hour without any, the next push counts as the first again.
 */
export function tellQuarantined(known: KnownQuarantine, counts: readonly QuarantineCount[], nowMs: number): QuarantineNews {
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
    // An hour has passed also if the clock was put back.
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

/** The subject of the trouble that no push is understood. */
export const NOT_UNDERSTOOD = 'no push is understood'
/** This many of the newest pushes show whether pushes are understood. */
export const NEWEST_PUSHES = 10

export type NewestPush = Pick<InboxPush, 'state' | 'reason' | 'receivedAtMs'>

/**
 * Decides whether operators must be told that no push is understood any more, or that pushes are understood again; null: neither. `newest`:
 * the newest pushes, the newest first. A trouble ends only when most are understood, so that it does not begin and end with every push.
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
