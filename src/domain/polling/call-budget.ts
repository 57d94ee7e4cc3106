import type { DayCalls } from './carrier-memory.ts'

const DAY_MS = 86_400_000
/** A call is counted on its UTC day. More days than this occur only if the clock keeps jumping. */
const DAYS_MAX = 8
/** How long to wait before asking again if another caller decides when a call is possible, milliseconds. */
const LOOK_MS = 150
/** While an app waits at one caller, scheduled polls of all other callers wait too, and this many milliseconds longer. */
const GRACE_MS = 500

/** The whole state of the budget for calls to the carrier. Days are counted from the epoch (UTC). Other times are by the budget's clock. */
export interface BudgetRow {
  /** The latest time that the budget's clock has shown, milliseconds. */
  readonly seenMs: number
  /** How far the budget's clock is ahead of the clock that drives it, milliseconds. */
  readonly offsetMs: number
  /** The time, microseconds, at which the next call would be made if all calls had an even pace. */
  readonly dueUs: number
  /** Every caller pauses until this time, milliseconds, because the carrier asked for it. */
  readonly pausedUntilMs: number
  /** The day on which the row was last used. */
  readonly lastDay: number
  readonly days: Readonly<Record<string, number>>
  /** The slots in use: the time at which each lapses, milliseconds, by the name of the slot. */
  readonly slots: Readonly<Record<string, number>>
  /** For each caller with a waiting app, by name: until when the schedules of all other callers wait for that app, milliseconds. */
  readonly appWaits: Readonly<Record<string, number>>
}

export const UNUSED_BUDGET: BudgetRow = {
  seenMs: 0,
  offsetMs: 0,
  dueUs: 0,
  pausedUntilMs: 0,
  lastDay: 0,
  days: {},
  slots: {},
  appWaits: {},
}

/** Both in milliseconds. Rate, pauses and slots use `nowMs`, whose clock may be monotonic. The day uses `wallMs`. */
export interface BudgetTime {
  readonly nowMs: number
  readonly wallMs: number
}

/** A caller's report and request. A caller is a replica, or the one process that calls the carrier. Durations are milliseconds. */
export interface BudgetRequest {
  /** A name that no other caller has. */
  readonly caller: string
  /** Names for the wanted slots, as many as `apps` and `schedule` together. The budget grants the first ones. Empty: no slot is wanted. */
  readonly names: readonly string[]
  /** The number of waiting calls, of apps and of the schedule. */
  readonly apps: number
  readonly schedule: number
  /** The slots whose calls have ended. */
  readonly ended: readonly string[]
  /** How long the carrier asked every caller to pause, from now on; 0: it did not. */
  readonly pauseMs: number
  /** A limit for the budget's clock, computed from the caller's own clock, milliseconds; null: the caller knows none. */
  readonly atMostMs: number | null
}

export interface BudgetLimits {
  /** Microseconds between two calls at the even pace. */
  readonly intervalUs: number
  /** How far calls may run ahead of the even pace, microseconds. */
  readonly headStartUs: number
  readonly callsPerDay: number
  readonly concurrency: number
  /** A slot lapses after this time, milliseconds, if its caller does not end it. */
  readonly slotMs: number
}

/**
 * Why no more slots were granted. `spent`: the calls of the day are used up. `paused`: the carrier asked for a pause. `busy`: all slots are
 * in use. `wait`: the rate allows no call yet. `apps`: apps of other callers go first.
 */
export type BudgetHold = 'spent' | 'paused' | 'busy' | 'wait' | 'apps'

export interface BudgetAnswer {
  readonly granted: number
  /** Null: all wanted slots were granted. */
  readonly hold: BudgetHold | null
  /** How long the hold lasts. If another caller decides that: how long to wait before asking again. */
  readonly retryMs: number
  /** How long until the rate and a pause allow another call. */
  readonly nextMs: number
  /** The budget's clock. It never goes back, and need not agree with any other clock. */
  readonly atMs: number
  readonly callsToday: number
  readonly dayLeftMs: number
}

/**
 * The budget for calls to the carrier (DOMAIN 6.4). It ends slots, begins a pause, and grants slots, to apps before the schedule.
 *
 * **Clock.** The budget's clock never goes back. If the clock that drives it does, the offset grows by as much. It never runs ahead of
 * `atMostMs`, so a clock that is put forward ends no pause.
 *
 * **Rate.** `dueUs` is the time of the next call at an even pace. A call may be made earlier than that by the head start.
 *
 * **Apps first.** An app that must wait leaves a mark in the row. Until its call leaves, or the mark lapses, the schedules of other callers
 * get no slot.
 */
export function settleBudget(
  before: BudgetRow,
  time: BudgetTime,
  request: BudgetRequest,
  limits: BudgetLimits,
): { readonly row: BudgetRow; readonly answer: BudgetAnswer } {
  const { caller, names, apps, schedule, ended, pauseMs, atMostMs } = request
  const { lastDay, days } = turnDay(before, time.wallMs)
  const atMs = Math.max(before.seenMs, Math.min(time.nowMs + before.offsetMs, atMostMs ?? Number.POSITIVE_INFINITY))
  const pausedUntilMs = pauseMs > 0 ? Math.max(before.pausedUntilMs, atMs + pauseMs) : before.pausedUntilMs
  const slots = running(before.slots, atMs, (name) => !ended.includes(name))
  const appWaits = running(before.appWaits, atMs, (name) => name !== caller || names.length === 0)
  const made = callsOf(days, lastDay)
  const inFlight = Object.keys(slots).length
  const fromUs = Math.max(before.dueUs, atMs * 1000)
  const leadUs = atMs * 1000 + limits.headStartUs - fromUs
  const onTime = leadUs < 0 ? 0 : Math.floor(leadUs / limits.intervalUs) + 1
  const free = pausedUntilMs > atMs ? 0 : Math.max(0, Math.min(onTime, limits.concurrency - inFlight, limits.callsPerDay - made))
  const toApps = Math.min(apps, free)
  const toSchedule = Object.keys(appWaits).length === 0 ? Math.min(schedule, free - toApps) : 0
  const granted = toApps + toSchedule
  const dueUs = granted > 0 ? fromUs + granted * limits.intervalUs : before.dueUs
  const paceMs = Math.max(0, Math.ceil((dueUs - limits.headStartUs - atMs * 1000) / 1000))
  const dayLeftMs = remainingDayMs(time.wallMs)

  function judge(): BudgetHold | null {
    if (granted === apps + schedule) return null
    if (made + granted >= limits.callsPerDay) return 'spent'
    if (pausedUntilMs > atMs) return 'paused'
    if (inFlight + granted >= limits.concurrency) return 'busy'
    return paceMs > 0 ? 'wait' : 'apps'
  }
  const hold = judge()
  const retries = { spent: dayLeftMs, paused: pausedUntilMs - atMs, wait: paceMs, busy: LOOK_MS, apps: LOOK_MS }
  const retryMs = hold === null ? LOOK_MS : retries[hold]
  const isAppLeft = apps > toApps && hold !== 'spent'
  return {
    row: {
      seenMs: atMs,
      offsetMs: atMs - time.nowMs,
      dueUs,
      pausedUntilMs,
      lastDay,
      days: granted > 0 ? addCalls(days, lastDay, granted) : days,
      slots: { ...slots, ...Object.fromEntries(names.slice(0, granted).map((name) => [name, atMs + limits.slotMs])) },
      appWaits: isAppLeft ? { ...appWaits, [caller]: atMs + retryMs + GRACE_MS } : appWaits,
    },
    answer: { granted, hold, retryMs, nextMs: Math.max(paceMs, pausedUntilMs - atMs, 0), atMs, callsToday: made + granted, dayLeftMs },
  }
}

/**
 * The calls that count for the day of `wallMs`: all calls of that day and of later days. A later day means that the clock was put back. The
 * count of each day is kept, so a clock that jumps back and forth allows no extra calls.
 */
export function callsToday(row: Pick<BudgetRow, 'lastDay' | 'days'>, wallMs: number): number {
  const { lastDay, days } = turnDay(row, wallMs)
  return callsOf(days, lastDay)
}

/**
 * The row on the day of `wallMs`. When a new day begins, later days are removed from the row: the clock counted them by mistake before it was
 * put back.
 */
export function turnDay<R extends Pick<BudgetRow, 'lastDay' | 'days'>>(row: R, wallMs: number): R {
  const today = dayOf(wallMs)
  if (today <= row.lastDay) return today === row.lastDay ? row : { ...row, lastDay: today }
  return { ...row, lastDay: today, days: Object.fromEntries(Object.entries(row.days).filter(([day]) => Number(day) <= today)) }
}

export function daysOf(calls: readonly DayCalls[]): BudgetRow['days'] {
  return Object.fromEntries(calls.map((one) => [one.day, one.calls]))
}

export function listDays(days: BudgetRow['days']): readonly DayCalls[] {
  return Object.entries(days).map(([day, calls]) => ({ day: Number(day), calls }))
}

/** The UTC day of a time, counted from the epoch. */
export function dayOf(wallMs: number): number {
  return Math.floor(wallMs / DAY_MS)
}

function remainingDayMs(wallMs: number): number {
  return DAY_MS - (wallMs % DAY_MS)
}

/** Until when the calls of the day are used up, epoch milliseconds; null: they are not. */
export function spentUntilMs(calls: { readonly callsToday: number; readonly callsPerDay: number }, wallMs: number): number | null {
  return calls.callsToday < calls.callsPerDay ? null : wallMs + remainingDayMs(wallMs)
}

/** Says that the relay's own limit keeps it from asking, so that nobody takes this for an outage of the carrier. */
export function describeSpent(untilMs: number): string {
  const until = new Date(untilMs).toISOString()
  return `Today's calls to the carrier (upstream.callsPerDay) are used up; the relay can ask again from ${until}.`
}

function callsOf(days: BudgetRow['days'], today: number): number {
  return Object.entries(days).reduce((sum, [day, calls]) => (Number(day) >= today ? sum + calls : sum), 0)
}

/** Counts calls on a day. With too many days, the oldest is added to the next one, so no call is forgotten. */
function addCalls(before: BudgetRow['days'], today: number, calls: number): BudgetRow['days'] {
  const days = new Map(listDays(before).map((one) => [one.day, one.calls]))
  days.set(today, (days.get(today) ?? 0) + calls)
  const [oldest = 0, second = 0] = [...days.keys()].toSorted((one, other) => one - other)
  if (days.size > DAYS_MAX) {
    days.set(second, (days.get(second) ?? 0) + (days.get(oldest) ?? 0))
    days.delete(oldest)
  }
  return Object.fromEntries(days)
}

function running(
  untilMs: Readonly<Record<string, number>>,
  atMs: number,
  isKept: (name: string) => boolean,
): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(untilMs).filter(([name, until]) => until > atMs && isKept(name)))
}
