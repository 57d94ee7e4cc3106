/**
 * Why pushes were not answered with 2xx. `not_stored` (503): they are authentic, but could not be stored. `overload` (503): too many bytes
 * came at once, so the signatures were not checked. `signature` (401): the signature does not match. `path` (404): signed, but posted to a
 * wrong path. `size` (413): too large.
 */
export type RefusedCause = 'not_stored' | 'overload' | 'signature' | 'path' | 'size'

/** A *spell* of refused pushes: they were refused for the same cause, without a long pause in between. Times are epoch milliseconds. */
export interface RefusedPushes {
  readonly cause: RefusedCause
  /** The number of requests. A push that was sent four times counts four times. */
  readonly count: number
  /** When the first and the last of these requests came. */
  readonly fromMs: number
  readonly untilMs: number
  /** Absent unless the cause is `not_stored`: for other causes, the relay cannot know whether a request is a repeated push. */
  readonly comeback?: Comeback
  /** If it is joined from several that do not overlap, such as disks that filled one after the other: how many, and when the last one began. */
  readonly parts?: { readonly count: number; readonly lastFromMs: number }
}

/** A spell, as it is stored, never with `parts`. Each process stores its own spells, so that no process overwrites another one's. */
export interface StoredRefused extends RefusedPushes {
  /** The random name of the process. */
  readonly process: string
}

/** At most so many different pushes were refused (`pushes`), and at least so many of them came again and were stored (`again`). Each process knows only its own. */
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
/** A spell is shown for this long after its last push, so that people see in the morning which pushes were refused in the night. */
const SHOWN_MS = 24 * HOUR_MS
/** How many spells are kept. A process stores some hundred at most, but with each restart there is another process. */
const STORED_MAX = 1000

/** Null: this version does not know the stored cause. */
export function readRefusedCause(stored: string): RefusedCause | null {
  return [...CAUSES.values()].find((cause) => cause === stored) ?? null
}

/** Returns why a push with this outcome was refused. Null: it was not refused, or nothing was lost by the refusal. */
export function refusedCauseOf(outcome: string): RefusedCause | null {
  return CAUSES.get(outcome) ?? null
}

/**
 * Adds refused pushes to the spells of one process. Drops spells that are too old to be shown. A spell that began before
 * `endedBeforeMs` gets no more pushes, because a trouble has begun whose pushes are counted by themselves.
 */
export function addRefused(
  spells: readonly RefusedPushes[],
  { cause, count }: Pick<RefusedPushes, 'cause' | 'count'>,
  { atMs, endedBeforeMs }: { readonly atMs: number; readonly endedBeforeMs: number },
): readonly RefusedPushes[] {
  const shown = spells.filter((spell) => isShown(spell, atMs))
  const last = shown.findLast((one) => one.cause === cause)
  // A jump of the clock, forward or back, counts as a pause.
  if (last === undefined || last.fromMs < endedBeforeMs || Math.abs(atMs - last.untilMs) >= PAUSE_MS) {
    const comeback = cause === 'not_stored' ? { comeback: NO_COMEBACK } : {}
    return [...shown, { cause, count, fromMs: atMs, untilMs: atMs, ...comeback }]
  }
  return shown.map((one) => (one === last ? { ...last, count: last.count + count, untilMs: Math.max(last.untilMs, atMs) } : one))
}

/**
 * Adds `pushes` to the newest spell of a process, and `again` to its oldest spells that still lack pushes. It is not known in which spell a push
 * was refused, but the sums over all spells are exact.
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

/** Whether every push that could not be stored is known to have come again. */
export function hasAllComeAgain(spells: readonly RefusedPushes[]): boolean {
  return spells.every(({ comeback }) => comeback !== undefined && comeback.pushes > 0 && comeback.again >= comeback.pushes)
}

/** Makes a spell of its own, which begins at `fromMs`, of the pushes that could not be stored and that `before`, an earlier state, does not count. */
export function splitRefused(spells: readonly RefusedPushes[], before: readonly RefusedPushes[], fromMs: number): readonly RefusedPushes[] {
  return spells.flatMap((spell) => {
    const earlier = before.find((one) => one.cause === spell.cause && one.fromMs === spell.fromMs)
    if (spell.cause !== 'not_stored' || earlier === undefined || earlier.count === spell.count) return [spell]
    return [
      { ...spell, count: earlier.count, untilMs: earlier.untilMs },
      { ...spell, count: spell.count - earlier.count, fromMs, comeback: NO_COMEBACK },
    ]
  })
}

/** How many pushes could not be stored in a trouble that began at `sinceMs`. */
export function notStoredSince(spells: readonly RefusedPushes[], sinceMs: number): number {
  const counted = spells.filter(({ cause, untilMs }) => cause === 'not_stored' && untilMs >= sinceMs)
  return counted.reduce((sum, { count }) => sum + count, 0)
}

const NO_COMEBACK: Comeback = { pushes: 0, again: 0 }

/** Joins the spells of all processes for operators: spells for one cause without a long pause in between become one. Newest first. */
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

/** Whether a spell is recent. A spell that is more than a day in the future is not recent, because the clock was put back after it. */
function isShown({ untilMs }: Pick<RefusedPushes, 'untilMs'>, nowMs: number): boolean {
  return Math.abs(nowMs - untilMs) < SHOWN_MS
}

function joinOf(before: RefusedPushes, spell: RefusedPushes): Omit<RefusedPushes, 'cause' | 'fromMs'> {
  const [one, other] = [before.comeback, spell.comeback]
  const parts = { count: (before.parts?.count ?? 1) + 1, lastFromMs: spell.fromMs }
  return {
    ...(spell.cause === 'not_stored' && spell.fromMs > before.untilMs ? { parts } : {}),
    count: before.count + spell.count,
    untilMs: Math.max(before.untilMs, spell.untilMs),
    ...(one === undefined || other === undefined
      ? {}
      : { comeback: { pushes: one.pushes + other.pushes, again: one.again + other.again } }),
  }
}

/** Returns the stored spells to delete: those that are too old to be shown, and if there are too many, the oldest ones. */
export function staleRefused(stored: readonly StoredRefused[], nowMs: number): readonly StoredRefused[] {
  const kept = stored.filter((spell) => isShown(spell, nowMs)).toSorted((a, b) => b.untilMs - a.untilMs)
  const isKept = new Set(kept.slice(0, STORED_MAX))
  return stored.filter((spell) => !isKept.has(spell))
}
