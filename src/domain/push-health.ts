/** Whether the carrier's pushes can be relied on. `unknown` before any push (DOMAIN 6.1). */
export type PushHealth = 'unknown' | 'healthy' | 'lossy'

/** The latest verdicts, oldest first: true, a push brought the entry; false, only a poll did, after the grace (DOMAIN 6.6). */
export type PushVerdicts = readonly boolean[]

/** How many verdicts are remembered: enough to see one loss in fifty, few enough to notice a change within a busy hour. */
const REMEMBERED = 200
/** With fewer there is no saying. */
const VERDICTS_MIN = 20
const LOSS_MAX = 0.05

export function addVerdict(verdicts: PushVerdicts, pushed: boolean): PushVerdicts {
  return [...verdicts.slice(1 - REMEMBERED), pushed]
}

export function assessPushHealth(verdicts: PushVerdicts): PushHealth {
  const lost = verdicts.filter((pushed) => !pushed).length
  if (lost === verdicts.length) return verdicts.length >= VERDICTS_MIN ? 'lossy' : 'unknown'
  if (lost > LOSS_MAX * Math.max(verdicts.length, VERDICTS_MIN)) return 'lossy'
  return verdicts.length >= VERDICTS_MIN ? 'healthy' : 'unknown'
}
