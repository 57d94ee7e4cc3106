import type { BudgetAnswer, BudgetHold, BudgetRequest, SharedLimits } from '../../../src/domain/polling/shared-budget.ts'
import { DAY_MS } from '../runner/constants.ts'

const DAYS_MAX = 8
const LOOK_MS = 150
const GRACE_MS = 500

/** The rule of the shared budget a second time, step by step, by the clock of a test: what the one statement on PostgreSQL has to answer. */
export function createBudgetRow(serverMs: () => number) {
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

  return function settle(request: BudgetRequest, limits: SharedLimits): BudgetAnswer {
    const { replica, names, apps, schedule, ended, pauseMs, atMostMs } = request
    const nowMs = serverMs()
    const atMs = Math.max(seenMs, Math.min(nowMs + offsetMs, atMostMs ?? Number.POSITIVE_INFINITY))
    seenMs = atMs
    offsetMs = atMs - nowMs
    const today = Math.floor(nowMs / DAY_MS)
    if (today > lastDay) days = new Map([...days].filter(([day]) => day <= today))
    lastDay = today
    if (pauseMs > 0) pausedUntilMs = Math.max(pausedUntilMs, atMs + pauseMs)
    calls = new Map([...calls].filter(([name, untilMs]) => untilMs > atMs && !ended.includes(name)))
    appWaits = new Map([...appWaits].filter(([name, untilMs]) => untilMs > atMs && (name !== replica || names.length === 0)))

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
        calls.set(names[grants] ?? '', atMs + limits.placeMs)
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
    if (apps > toApps && hold !== 'spent') appWaits.set(replica, atMs + retryMs + GRACE_MS)
    const nextMs = Math.max(0, paceMs(), pausedUntilMs - atMs)
    return { granted: grants, hold, retryMs, nextMs, atMs, callsToday: made + grants, dayLeftMs }
  }
}
