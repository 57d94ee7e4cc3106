import type { Registry } from 'prom-client'
import type { Reads } from '../../core/flow/relay-part.ts'
import { instrumentsOf } from '../../core/ops/instruments.ts'
import { countOpen, countWaiting, heldSinceMs } from './watchdogs.rows.ts'

export function registerWatchdogs(registry: Registry, { reads }: Reads<'session'>): () => Promise<void> {
  const { gauge } = instrumentsOf(registry)
  const open = gauge('relay_watchdog_breaches', 'Breaches of rules that last, by rule.', ['rule'])
  const waiting = gauge(
    'relay_watchdog_waiting',
    'Parcels that are told to be stalled once the carrier was asked about them, up to 100,000.',
  )
  const held = gauge('relay_watchdogs_held', '1 while nothing is told, because neither pushes nor polls tell anything.')
  return async () => {
    const { session } = reads
    const read = await Promise.all([countOpen(session), countWaiting(session), heldSinceMs(session)]).catch(() => null)
    if (read === null) return
    const [counts, count, since] = read
    open.reset()
    for (const [rule, of] of counts) open.set({ rule }, of)
    waiting.set(count)
    held.set(since === null ? 0 : 1)
  }
}
