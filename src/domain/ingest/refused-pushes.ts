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
  /** Absent for causes other than `not_stored`, for which nobody knows whose pushes these are. */
  readonly comeback?: Comeback
}

/** A spell as it is stored. Each process stores its own, so that none overwrites those of another. */
export interface StoredRefused extends RefusedPushes {
  /** The random name of the process. */
  readonly process: string
}

/** How many different pushes were refused, and how many of them are known to have come again and were taken. */
export interface Comeback {
  readonly pushes: number
  readonly again: number
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
/** A process stores some hundred spells at most. This many are kept even if it starts again and again. */
const STORED_MAX = 1000

/** Reads a stored cause; null: this version knows no such cause. */
export function readRefusedCause(stored: string): RefusedCause | null {
  return [...CAUSES.values()].find((cause) => cause === stored) ?? null
}

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
  if (last === undefined || Math.abs(atMs - last.untilMs) >= PAUSE_MS) {
    const comeback = cause === 'not_stored' ? { comeback: NO_COMEBACK } : {}
    return [...shown, { cause, count, fromMs: atMs, untilMs: atMs, ...comeback }]
  }
  return shown.map((one) => (one === last ? { ...last, count: last.count + count, untilMs: Math.max(last.untilMs, atMs) } : one))
}

/**
 * Adds to the spells of one process the pushes that were refused for the first time, to the newest, and those that have come again, to the
 * oldest that lack any: in the end the sum is right.
 */
export function addComebacks(spells: readonly RefusedPushes[], { pushes, again }: Comeback): readonly RefusedPushes[] {
  const newest = spells.findLast(({ comeback }) => comeback !== undefined)
  let left = again
  return spells.map((spell) => {
    if (spell.comeback === undefined) return spell
    const known = spell.comeback.pushes + (spell === newest ? pushes : 0)
    const more = Math.min(left, known - spell.comeback.again)
    left -= more
    return { ...spell, comeback: { pushes: known, again: spell.comeback.again + more } }
  })
}

/** Whether every push that could not be stored has come again since. False: it is not known. */
export function hasAllComeAgain(spells: readonly RefusedPushes[]): boolean {
  return spells.every(({ comeback }) => comeback !== undefined && comeback.pushes > 0 && comeback.again >= comeback.pushes)
}

const NO_COMEBACK: Comeback = { pushes: 0, again: 0 }

/** The spells of all processes as operators see them: those without a long pause between them are one. The newest come first. */
export function joinRefused(spells: readonly RefusedPushes[], nowMs: number): readonly RefusedPushes[] {
  const joined: RefusedPushes[] = []
  const shown = spells.filter((spell) => isShown(spell, nowMs))
  for (const { cause, count, fromMs, untilMs, comeback } of shown.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const spell = { cause, count, fromMs, untilMs, ...(comeback === undefined ? {} : { comeback }) }
    const at = joined.findLastIndex((one) => one.cause === cause)
    const before = joined[at]
    if (before === undefined || fromMs - before.untilMs >= PAUSE_MS) joined.push(spell)
    else joined[at] = { ...before, ...joinOf(before, spell) }
  }
  return joined.toSorted((a, b) => b.untilMs - a.untilMs)
}

/** If the clock was put back by more than a day, a spell counts as old, or it would be shown until that time comes again. */
function isShown({ untilMs }: Pick<RefusedPushes, 'untilMs'>, nowMs: number): boolean {
  return Math.abs(nowMs - untilMs) < SHOWN_MS
}

function joinOf(before: RefusedPushes, spell: RefusedPushes): Omit<RefusedPushes, 'cause' | 'fromMs'> {
  const [one, other] = [before.comeback, spell.comeback]
  return {
    count: before.count + spell.count,
    untilMs: Math.max(before.untilMs, spell.untilMs),
    ...(one === undefined || other === undefined
      ? {}
      : { comeback: { pushes: one.pushes + other.pushes, again: one.again + other.again } }),
  }
}

/** The stored spells that are to be forgotten: those that are not shown any more, and the oldest if there are too many. */
export function staleRefused(stored: readonly StoredRefused[], nowMs: number): readonly StoredRefused[] {
  const kept = stored.filter((spell) => isShown(spell, nowMs)).toSorted((a, b) => b.untilMs - a.untilMs)
  const isKept = new Set(kept.slice(0, STORED_MAX))
  return stored.filter((spell) => !isKept.has(spell))
}
