import cron from 'node-cron'
import type { Log } from '../flow/ports.ts'

/** Wakes something by a cron expression; whether there is anything to do is not its business. */
export function startSchedule(expression: string, wake: () => void, log: Log): { stop(): Promise<void> } {
  cron.setLogger({
    debug: (message) => log.debug({}, String(message)),
    info: (message) => log.debug({}, String(message)),
    warn: (message) => log.debug({}, String(message)),
    error: (message, err) => log.error({ err }, String(message)),
  })
  const task = cron.schedule(expression, wake, { timezone: 'UTC' })
  return { stop: async () => await task.destroy() }
}
