import type { PushHealth } from '../../domain/polling/push-health.ts'
import type { Relay, Writes } from '../relay.ts'

export interface PushHealthMonitor {
  health(): PushHealth
  /** Saves what was learnt, and logs when the health changes. Call it after each pass of the poller. */
  update(): Promise<void>
  /** Reads the health that another replica has saved. */
  look(): Promise<void>
}

/** Opens the monitor, which starts with the health that was saved last. */
export async function openPushHealthMonitor(
  ports: Pick<Relay, 'log'> & Writes<'pushChannel' | 'checkpointModel'> & { readonly wake: () => void },
): Promise<PushHealthMonitor> {
  let { health } = await ports.write.pushChannel()
  return {
    health: () => health,
    async look() {
      health = (await ports.write.pushChannel()).health
    },
    async update() {
      const before = health
      const news = await ports.write.checkpointModel()
      health = news.health
      if (news.eventQueued) ports.wake()
      if (health === before) return
      if (health === 'silent')
        ports.log.warn(
          { before },
          'no pushes with news arrive although the carrier scans (none come, or none are understood): polls fall back to their full intervals',
        )
      else ports.log.info({ before, pushHealth: health }, 'the health of the carrier’s pushes has changed')
    },
  }
}
