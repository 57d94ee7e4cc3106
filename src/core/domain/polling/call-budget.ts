import { z } from 'zod'
import { countText } from '../amounts.ts'
import { parseStoredAs } from '../json-body.ts'

/** The part of the carrier that refused: the token endpoint refused the password, or the status API refused a token. */
export type RefusedBy = NonNullable<CredentialRefusal['by']>

const dayCalls = z.object({
  /** Days since the epoch. */
  day: z.number(),
  calls: z.number(),
})

/** The calls of one UTC day, including those that the relay may make before it writes again. */
export type DayCalls = Readonly<z.infer<typeof dayCalls>>

const credentialRefusal = z.object({
  /** How many attempts were made since the credentials last worked. */
  tries: z.number(),
  /** When the credentials may be tried again. */
  untilMs: z.number(),
  /** When the credentials were last refused; absent: not known. */
  atMs: z.number().nullable().exactOptional(),
  by: z.enum(['token_endpoint', 'status_api']).nullable().exactOptional(),
  /** Shows whether the password has changed since the refusal: a salt and a few bytes of a digest, too few to find the password. */
  mark: z.object({ salt: z.string(), digest: z.string() }).nullable(),
})

export type CredentialRefusal = Readonly<z.infer<typeof credentialRefusal>>

const carrierMemory = z.object({
  /** When this was written, epoch milliseconds. */
  atMs: z.number(),
  /** When the last recorded question was asked; absent: not known. */
  askedAtMs: z.number().exactOptional(),
  days: z.array(dayCalls).readonly(),
  /** Until when the carrier asked to pause; null: it did not ask. */
  pausedUntilMs: z.number().nullable(),
  tokenPausedUntilMs: z.number().nullable(),
  /** Null: the carrier does not refuse the credentials. */
  refusal: credentialRefusal.nullable(),
})

/** The facts about calls that the relay keeps over a restart, so that crashes cannot make it exceed the carrier's limits (DOMAIN 6.4). */
export type CarrierMemory = Readonly<z.infer<typeof carrierMemory>>

/** Parses stored facts; null: they are damaged or of another format. */
export function parseCarrierMemory(text: string): CarrierMemory | null {
  return parseStoredAs(carrierMemory, text)
}

const DAY_MS = 86_400_000
/** The most UTC days whose calls are kept. Only today's calls matter, unless the clock is put back. */
const DAYS_MAX = 8
/** How soon a caller asks again while it waits for other callers (`busy` and `apps`). */
const LOOK_MS = 150
/** While an app waits at one caller, the schedules of the other callers wait until that caller has asked again, and this much longer. */
const GRACE_MS = 500

/** The whole state of the budget for calls to the carrier. Days are UTC and counted from the epoch. All other times are of the budget's clock. */
export interface BudgetRow {
  /** The latest time that the budget's clock has shown. */
  readonly seenMs: number
  /** How far the budget's clock is ahead of `BudgetTime.nowMs`. */
  readonly offsetMs: number
  /** When the next call is due at an even pace, microseconds. */
  readonly dueUs: number
  /** Until when all callers pause, because the carrier asked for it. */
  readonly pausedUntilMs: number
  readonly lastDay: number
  readonly days: Readonly<Record<string, number>>
  /** The slots of running calls, by name, with the time at which each slot lapses. */
  readonly slots: Readonly<Record<string, number>>
  /** The callers at which an app waits, by name. The schedules of all other callers wait until the given time. */
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

/** The present time. `nowMs`: for the rate, pauses and slots; its clock may be monotonic. `wallMs`: the wall clock, for days. */
export interface BudgetTime {
  readonly nowMs: number
  readonly wallMs: number
}

/** What a caller asks for and reports. A caller is a replica, or a relay that does not share its store. */
export interface BudgetRequest {
  readonly caller: string
  /** Names for the wanted slots, as many as `apps` + `schedule`. If only some slots are granted, the first names get them. */
  readonly names: readonly string[]
  /** How many calls for apps wait, and how many scheduled calls. */
  readonly apps: number
  readonly schedule: number
  /** The names of slots whose calls have ended. */
  readonly ended: readonly string[]
  /** How long the carrier asked to pause, counted from now; 0: it did not ask. */
  readonly pauseMs: number
  /** An upper limit for the budget's clock, from the caller's own clock; null: no limit. */
  readonly atMostMs: number | null
}

export interface BudgetLimits {
  /** Microseconds between two calls at the even pace. */
  readonly intervalUs: number
  /** How much earlier than at the even pace a call may be made, microseconds. */
  readonly headStartUs: number
  readonly callsPerDay: number
  readonly concurrency: number
  /** How long a slot lasts unless its caller ends it. */
  readonly slotMs: number
}

/**
 * Why not all wanted slots were granted. `spent`: the calls of the day are used up. `paused`: the carrier asked for a pause. `busy`: all slots
 * are in use. `wait`: the rate allows no call yet. `apps`: apps that wait at other callers go first.
 */
export type BudgetHold = 'spent' | 'paused' | 'busy' | 'wait' | 'apps'

export interface BudgetAnswer {
  readonly granted: number
  /** Null: all wanted slots were granted. */
  readonly hold: BudgetHold | null
  /** How long to wait before asking again: until the hold is over, or a short time if its end depends on other callers. */
  readonly retryMs: number
  /** How long until both the rate and the pause allow another call. */
  readonly nextMs: number
  /** The time of the budget's clock. This clock never goes back, and may differ from all other clocks. */
  readonly atMs: number
  readonly callsToday: number
  readonly dayLeftMs: number
}

/**
 * Applies a caller's request to the budget for calls to the carrier (DOMAIN 6.4): ends slots, begins a pause, and grants slots, first to apps
 * and then to the schedule.
 *
 * **Clock.** The budget's clock never goes back: if `nowMs` goes back, `offsetMs` grows by as much. The budget's clock never runs ahead of
 * `atMostMs`. So a pause does not end early if a clock is put forward.
 *
 * **Apps first.** If an app must wait, its caller is entered in `appWaits`. Until the app's call is made, or the entry lapses, the schedules
 * of other callers get no slot.
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
 * Returns how many calls count for the day of `wallMs`: the calls of that day and, if the clock was put back, those of later days. So a clock
 * that jumps back and forth does not allow more calls.
 */
export function callsToday(row: Pick<BudgetRow, 'lastDay' | 'days'>, wallMs: number): number {
  const { lastDay, days } = turnDay(row, wallMs)
  return callsOf(days, lastDay)
}

/** Returns the row for the day of `wallMs`. A new day removes all later days, which were counted while the clock was ahead. */
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

export function dayOf(wallMs: number): number {
  return Math.floor(wallMs / DAY_MS)
}

function remainingDayMs(wallMs: number): number {
  return DAY_MS - (wallMs % DAY_MS)
}

/** Returns until when the relay may make no calls, epoch milliseconds; null: calls are left. */
export function spentUntilMs(calls: { readonly callsToday: number; readonly callsPerDay: number }, wallMs: number): number | null {
  return calls.callsToday < calls.callsPerDay ? null : wallMs + remainingDayMs(wallMs)
}

/** Names the relay's own limit, so that nobody blames the carrier. */
export function describeSpent(untilMs: number): string {
  const until = new Date(untilMs).toISOString()
  return `Today's calls to the carrier (upstream.callsPerDay) are used up; the relay can ask again from ${until}.`
}

/** Says how many of today's calls are used, as a part of a sentence. */
export function callsText({ callsToday, callsPerDay }: { readonly callsToday: number; readonly callsPerDay: number }): string {
  return `${countText(callsToday)} of today’s ${countText(callsPerDay)} calls are used`
}

function callsOf(days: BudgetRow['days'], today: number): number {
  return Object.entries(days).reduce((sum, [day, calls]) => (Number(day) >= today ? sum + calls : sum), 0)
}

/** If there are too many days, the calls of the oldest day are added to the next day, so that all calls stay counted. */
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
