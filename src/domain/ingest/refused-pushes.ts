import type { Trouble } from '../admin/trouble.ts'

/**
 * Why pushes got no 2xx. `not_stored`: 503, authentic, but the store did not take them. `overload`: 503, too many bytes came at once, so
 * their signatures were not checked. `signature`: 401. `path`: 404, signed and posted to another path than the webhook's. `size`: 413.
 */
export type RefusedCause = 'not_stored' | 'overload' | 'signature' | 'path' | 'size'

/** Pushes that were refused for one cause without a long pause. Times are epoch milliseconds. */
export interface RefusedPushes {
  readonly cause: RefusedCause
  /** How many requests. A push that was sent four times counts four times. */
  readonly count: number
  /** When the first and the last of them came. */
  readonly fromMs: number
  readonly untilMs: number
}

const CAUSES: ReadonlyMap<string, RefusedCause> = new Map([
  ['storage_unavailable', 'not_stored'],
  ['overloaded', 'overload'],
  ['signature_invalid', 'signature'],
  ['wrong_path', 'path'],
  ['body_too_large', 'size'],
])

const HOUR_MS = 3_600_000
/** After a pause this long, the next refused push begins a new spell. */
const PAUSE_MS = HOUR_MS
/** A spell is shown for this long after its last push, so that the night's losses are still there in the morning. */
const SHOWN_MS = 24 * HOUR_MS

/** The cause behind the outcome of a push; null: it was not refused, or nobody lacks it. */
export function refusedCauseOf(outcome: string): RefusedCause | null {
  return CAUSES.get(outcome) ?? null
}

/** Adds refused pushes to the spells of one process. Spells that are not shown any more are dropped. */
export function addRefused(
  spells: readonly RefusedPushes[],
  { cause, count }: Pick<RefusedPushes, 'cause' | 'count'>,
  atMs: number,
): readonly RefusedPushes[] {
  const shown = spells.filter((spell) => isShown(spell, atMs))
  const last = shown.findLast((one) => one.cause === cause)
  // A pause has passed also if the clock was put back.
  if (last === undefined || Math.abs(atMs - last.untilMs) >= PAUSE_MS) return [...shown, { cause, count, fromMs: atMs, untilMs: atMs }]
  return shown.map((one) => (one === last ? { ...last, count: last.count + count, untilMs: Math.max(last.untilMs, atMs) } : one))
}

/** The spells of all processes as operators see them: those without a long pause between them are one. The newest come first. */
export function joinRefused(spells: readonly RefusedPushes[], nowMs: number): readonly RefusedPushes[] {
  const joined: RefusedPushes[] = []
  const shown = spells.filter((spell) => isShown(spell, nowMs))
  for (const { cause, count, fromMs, untilMs } of shown.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const at = joined.findLastIndex((one) => one.cause === cause)
    const before = joined[at]
    if (before === undefined || fromMs - before.untilMs >= PAUSE_MS) joined.push({ cause, count, fromMs, untilMs })
    else joined[at] = { ...before, count: before.count + count, untilMs: Math.max(before.untilMs, untilMs) }
  }
  return joined.toSorted((a, b) => b.untilMs - a.untilMs)
}

/** If the clock was put back by more than a day, a spell counts as old, or it would be shown until that time comes again. */
function isShown({ untilMs }: Pick<RefusedPushes, 'untilMs'>, nowMs: number): boolean {
  return Math.abs(nowMs - untilMs) < SHOWN_MS
}

/** The prefix of the subjects under which spells are stored. */
export const REFUSED_SUBJECTS = 'refused '
const SUBJECT = /^refused (\S+) (\d+) (\S+)$/
/** A process stores some hundred spells at most. So many are kept also if it is started again and again. */
const STORED_MAX = 1000

/** A spell as it is stored. Each process has rows of its own, so that none overwrites those of another. */
export function encodeRefused({ cause, count, fromMs, untilMs }: RefusedPushes, process: string): Trouble {
  return { subject: `${REFUSED_SUBJECTS}${cause} ${fromMs} ${process}`, sinceMs: untilMs, count }
}

/** Reads a stored spell, and the process that has stored it; null: it is none. */
export function decodeRefused({ subject, sinceMs, count }: Trouble): (RefusedPushes & { readonly process: string }) | null {
  const [, name, fromMs, process = ''] = SUBJECT.exec(subject) ?? []
  const cause = [...CAUSES.values()].find((one) => one === name)
  return cause === undefined ? null : { cause, count, fromMs: Number(fromMs), untilMs: sinceMs, process }
}

/** The stored spells that are to be forgotten: those that are not shown any more, and the oldest if there are too many. */
export function staleRefused(stored: readonly Trouble[], nowMs: number): readonly Trouble[] {
  const kept = stored.filter(({ sinceMs }) => isShown({ untilMs: sinceMs }, nowMs)).toSorted((a, b) => b.sinceMs - a.sinceMs)
  const isKept = new Set(kept.slice(0, STORED_MAX))
  return stored.filter((one) => !isKept.has(one))
}
