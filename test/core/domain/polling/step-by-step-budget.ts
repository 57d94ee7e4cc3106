import type { BudgetAnswer, BudgetHold, BudgetLimits, BudgetRequest } from '../../../../src/core/domain/polling/call-budget.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { seeded } from '../../../support/runner/seeded.ts'

const DAYS_MAX = 8
const LOOK_MS = 150
const GRACE_MS = 500

/** Implements the rule of the budget a second time, one call after another, to check `settleBudget`. */
export function createStepByStepBudget() {
  let seenMs = 0
  let offsetMs = 0
  let dueUs = 0
  let pausedUntilMs = 0
  let lastDay = 0
  let days = new Map<number, number>()
  let calls = new Map<string, number>()
  let appWaits = new Map<string, number>()

  function note(today: number, grants: number): void {
    days.set(today, (days.get(today) ?? 0) + grants)
    while (days.size > DAYS_MAX) {
      const [oldest = 0, second = 0] = [...days.keys()].toSorted((a, b) => a - b)
      days.set(second, (days.get(second) ?? 0) + (days.get(oldest) ?? 0))
      days.delete(oldest)
    }
  }

  return function settle(nowMs: number, request: BudgetRequest, limits: BudgetLimits): BudgetAnswer {
    const { caller, names, apps, schedule, ended, pauseMs, atMostMs } = request
    const atMs = Math.max(seenMs, Math.min(nowMs + offsetMs, atMostMs ?? Number.POSITIVE_INFINITY))
    seenMs = atMs
    offsetMs = atMs - nowMs
    const today = Math.floor(nowMs / DAY_MS)
    if (today > lastDay) days = new Map([...days].filter(([day]) => day <= today))
    lastDay = today
    if (pauseMs > 0) pausedUntilMs = Math.max(pausedUntilMs, atMs + pauseMs)
    calls = new Map([...calls].filter(([name, untilMs]) => untilMs > atMs && !ended.includes(name)))
    appWaits = new Map([...appWaits].filter(([name, untilMs]) => untilMs > atMs && (name !== caller || names.length === 0)))

    const made = [...days].reduce((sum, [day, count]) => (day >= today ? sum + count : sum), 0)
    const atUs = atMs * 1000
    let grants = 0
    const paceMs = () => Math.max(0, Math.ceil((dueUs - limits.headStartUs - atUs) / 1000))
    const take = (wanted: number): number => {
      let taken = 0
      for (; taken < wanted; taken++) {
        if (pausedUntilMs > atMs || calls.size >= limits.concurrency || made + grants >= limits.callsPerDay) break
        if (Math.max(dueUs, atUs) - limits.headStartUs > atUs) break
        dueUs = Math.max(dueUs, atUs) + limits.intervalUs
        calls.set(names[grants] ?? '', atMs + limits.slotMs)
        grants += 1
      }
      return taken
    }
    const toApps = take(apps)
    const toSchedule = appWaits.size > 0 ? 0 : take(schedule)
    if (grants > 0) note(today, grants)

    const reason = (): BudgetHold | null => {
      if (toApps + toSchedule === apps + schedule) return null
      if (made + grants >= limits.callsPerDay) return 'spent'
      if (pausedUntilMs > atMs) return 'paused'
      if (calls.size >= limits.concurrency) return 'busy'
      return paceMs() > 0 ? 'wait' : 'apps'
    }
    const hold = reason()
    const dayLeftMs = DAY_MS - (nowMs % DAY_MS)
    const retries = { spent: dayLeftMs, paused: pausedUntilMs - atMs, wait: paceMs(), busy: LOOK_MS, apps: LOOK_MS }
    const retryMs = hold === null ? LOOK_MS : retries[hold]
    if (apps > toApps && hold !== 'spent') appWaits.set(caller, atMs + retryMs + GRACE_MS)
    const nextMs = Math.max(0, paceMs(), pausedUntilMs - atMs)
    return { granted: grants, hold, retryMs, nextMs, atMs, callsToday: made + grants, dayLeftMs }
  }
}

/** Makes random requests of three callers whose clock sometimes jumps, with the right answers. The callers end the slots that they got. */
export function* randomRequests(seed: number, settle: ReturnType<typeof createStepByStepBudget>, count = 500) {
  const random = seeded(seed)
  const pick = (least: number, most: number) => Math.floor(least + random() * (most - least + 1))
  const limits = { callsPerDay: 200, concurrency: 5, slotMs: 3000, intervalUs: 66_667, headStartUs: 133_334 }
  let nowMs = NOON + DAY_MS / 2 - 60_000
  let held: readonly string[] = []
  let atMs: number | null = null
  for (let at = 0; at < count; at++) {
    nowMs += random() < 0.02 ? pick(-30, 30) * 3_600_000 : pick(0, 300)
    const [apps, schedule] = random() < 0.2 ? [0, 0] : [random() < 0.3 ? pick(1, 3) : 0, pick(0, 4)]
    const ended = held.filter(() => random() < 0.3)
    const request: BudgetRequest = {
      caller: `replica ${pick(0, 2)}`,
      names: Array.from({ length: apps + schedule }, (_, nth) => `${at}-${nth}`),
      apps,
      schedule,
      ended,
      pauseMs: random() < 0.02 ? pick(1, 5000) : 0,
      atMostMs: atMs === null || random() < 0.2 ? null : atMs + pick(500, 3000),
    }
    const answered: BudgetAnswer = settle(nowMs, request, limits)
    yield { nowMs, request, limits, answered }
    atMs = answered.atMs
    held = [...held.filter((name) => !ended.includes(name)), ...request.names.slice(0, answered.granted)]
  }
}
