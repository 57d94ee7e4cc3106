import type { Config } from '../../core/config/config.ts'
import { startRepeating } from '../../core/runtime/schedule.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import { otherClocksOf } from '../../core/wiring/carrier.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { REPLICA } from '../../server/replicas/replicas.ts'
import { createTroubleWatch } from '../events/trouble-watch.ts'
import type { Reporting } from './reporting.ts'

/** How often the relay checks whether a trouble has begun or ended, in milliseconds. Without a change the check costs nothing. */
const LOOK_MS = 1000
/** How often the relay looks for ended jobs and quarantined pushes, in milliseconds, to notify operators of them. */
const TELL_MS = 5000

type Parts = Pick<Relay, 'write' | 'clock' | 'disk' | 'replicas' | 'carrier' | 'unstored' | 'closing' | 'log'>
type OwnParts = Pick<Relay, 'certificates' | 'wakeDispatcher' | 'shared'> &
  Pick<Capabilities, 'delivery'> & { readonly reporting: Reporting }

/** Begins to notify operators of events. */
export function startTelling({ limits }: Pick<Config, 'limits'>, parts: Parts & OwnParts): void {
  const { write, clock, replicas, unstored, wakeDispatcher, reporting, closing, log } = parts
  const watch = createTroubleWatch(
    {
      ...parts,
      otherClocks: () => otherClocksOf(parts),
      carrier: parts.carrier.state,
      freeBytes: () => parts.disk.state().freeBytes,
      certificates: parts.certificates.shown,
      refused: { troubleBegins: reporting.diskFull, save: reporting.saveRefused },
      isPoller: () => replicas.holds('poller'),
      wake: wakeDispatcher,
    },
    { freeBytesMin: limits.freeSpaceBytesMin, replica: REPLICA.name },
  )
  let hasToldRestores = false
  const tell = async () => {
    if (!replicas.holds('janitor')) return
    const restores = hasToldRestores ? 0 : await write.tellRestores({ nowMs: clock.now() })
    // Look for restores only once, because no store is restored while a relay uses it.
    hasToldRestores = true
    if (restores + (await write.tellOperators({ nowMs: clock.now() })) > 0) wakeDispatcher()
  }
  const often = (work: () => Promise<void>, everyMs: number) =>
    startRepeating(
      () => work().catch((err: unknown) => log.debug({ err }, 'notifying operators or deleting old events failed; the relay tries again')),
      everyMs,
    )
  const look = async () => {
    await watch()
    await unstored.retry(parts.delivery.postOperator)
  }
  for (const repeated of [often(look, LOOK_MS), often(tell, TELL_MS)]) closing.add(() => repeated.stop())
}
