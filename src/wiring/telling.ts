import type { RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { Config } from '../config/config.ts'
import type { OtherClocks } from '../domain/admin/clock-record.ts'
import { createTroubleWatch, type TroubleWatchPorts } from '../flow/admin/trouble-watch.ts'
import type { Unstored } from '../flow/admin/unstored.ts'
import type { Log, PostOperator } from '../flow/ports.ts'
import { startRepeating } from '../runtime/repeating.ts'
import type { Certificates } from './certificates.ts'
import type { Closing } from './closing.ts'
import { REPLICA } from './replicas.ts'
import type { Storage } from './storage/opened-storage.ts'

/** How often the relay checks whether a trouble has begun or ended, in milliseconds. Without a change the check costs nothing. */
const LOOK_MS = 1000
/** How often the relay looks for ended jobs and quarantined pushes, in milliseconds, to notify operators of them. */
const TELL_MS = 5000

export interface TellingPorts {
  readonly storage: Pick<Storage, 'write' | 'clock' | 'disk' | 'replicas'>
  readonly carrier: Pick<RemoteCarrier, 'state'>
  readonly otherClocks: () => OtherClocks
  readonly certificates: Pick<Certificates, 'shown'>
  readonly refused: TroubleWatchPorts['refused']
  readonly unstored: Unstored
  readonly postOperator: PostOperator
  /** Called when an operator event may have been queued. */
  readonly wakeDispatcher: () => void
  readonly closing: Closing
  readonly log: Log
}

/** Begins to notify operators of events. */
export function startTelling({ limits }: Pick<Config, 'limits'>, ports: TellingPorts): void {
  const { storage, carrier, certificates, unstored, wakeDispatcher, closing, log } = ports
  const { write, clock, disk, replicas } = storage
  const watch = createTroubleWatch(
    {
      write,
      unstored,
      otherClocks: ports.otherClocks,
      clock,
      log,
      carrier: carrier.state,
      freeBytes: () => disk.state().freeBytes,
      certificates: certificates.shown,
      refused: ports.refused,
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
    await unstored.retry(ports.postOperator)
  }
  for (const repeated of [often(look, LOOK_MS), often(tell, TELL_MS)]) closing.add(() => repeated.stop())
}
