import type { OperatorEvent } from '../delivery/operator-event.ts'
import type { InboxPush } from '../ingest/inbox.ts'

/** A problem that lasts and that operators know of. */
export interface Trouble {
  /** Its name: `carrier`, `credentials`, `disk`, `disk full`, a certificate, or a reason of quarantine. */
  readonly subject: string
  /** When it began, epoch milliseconds. For a reason of quarantine: when operators were last notified of it. */
  readonly sinceMs: number
  /** How many more have come since then. */
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

const QUARANTINE = 'quarantine '
const HOUR_MS = 3_600_000

/** The prefix of the subjects of quarantine. */
export const QUARANTINE_SUBJECTS = QUARANTINE

export interface QuarantineCount {
  readonly atMs: number
  readonly reason: string
  readonly count: number
}

/** The events for operators about quarantined pushes, and the state for the next look. `over`: reasons without a push for an hour. */
export interface QuarantineNews {
  readonly events: readonly OperatorEvent[]
  readonly kept: readonly Trouble[]
  readonly over: readonly string[]
}

/**
 * Decides which events to send about pushes that were quarantined since the last look. The first push of a reason is reported at once, then
 * once an hour how many more there were. After an hour without any, the next one counts as the first again.
 */
export function tellQuarantined(known: readonly Trouble[], counts: readonly QuarantineCount[], nowMs: number): QuarantineNews {
  const events: OperatorEvent[] = []
  const kept: Trouble[] = []
  const over: string[] = []
  const byReason = Map.groupBy(counts, ({ reason }) => reason)
  const subjects = new Set([...known.map(({ subject }) => subject), ...[...byReason.keys()].map((reason) => QUARANTINE + reason)])
  for (const subject of subjects) {
    const reason = subject.slice(QUARANTINE.length)
    const before = known.find((one) => one.subject === subject)
    const fresh = byReason.get(reason) ?? []
    const more = fresh.reduce((sum, { count }) => sum + count, 0)
    const told = (count: number, sinceMs: number) => events.push({ event: 'pushes_quarantined', reason, count, since: instant(sinceMs) })
    if (before === undefined) {
      told(more, Math.min(...fresh.map(({ atMs }) => atMs)))
      kept.push({ subject, sinceMs: nowMs, count: 0 })
      continue
    }
    const count = before.count + more
    // Count also if the clock was put back.
    const isDue = Math.abs(nowMs - before.sinceMs) >= HOUR_MS
    if (isDue && count === 0) over.push(subject)
    else if (isDue) {
      told(count, before.sinceMs)
      kept.push({ subject, sinceMs: nowMs, count: 0 })
    } else if (more > 0) kept.push({ ...before, count })
  }
  return { events, kept, over }
}

/** The subject of the trouble that no push is understood. */
export const NOT_UNDERSTOOD = 'no push is understood'
/** This many of the newest pushes show whether pushes are understood. */
export const NEWEST_PUSHES = 10
/** The relay has understood a push that is in quarantine for one of these reasons. */
const UNDERSTOOD_REASONS = ['parcel_full', 'failed']

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
  return (state === 'quarantined' || state === 'dismissed') && !UNDERSTOOD_REASONS.includes(reason ?? '')
}

function instant(atMs: number): string {
  return new Date(atMs).toISOString()
}
