import type { Config } from '../config/config.ts'
import type { Incoming } from '../domain/history/recording.ts'
import type { Log } from '../flow/ports.ts'
import { queueInProcess } from '../runtime/commit-queue.ts'
import { createDiskSign, troubleOn } from '../runtime/disk-watch.ts'
import { systemClock } from '../runtime/system-clock.ts'
import { createChangeTable, tellChanged } from '../runtime/threads/change-table.ts'
import { postgres } from '../store/postgres/postgres-engine.ts'
import { takeRelayLease } from '../store/postgres/relay-lease.ts'
import type { HostedReceiver } from './hosted-receiver.ts'
import type { Storage } from './opened-storage.ts'
import { openReceiveSide, receiveSettingsOf } from './receive-side.ts'
import { openWriteSide, writeRulesOf } from './write-side.ts'

/** A relay that was killed elsewhere keeps the next one waiting for so long. */
const LEASE_MS = 5000
/** While one batch waits for the server, others are decided and sent. */
const BATCHES_AT_ONCE = 3

/** Writing and receiving on this thread, for a store on a server: what takes long there happens in another process anyway. */
export async function hostInProcess(config: Config, url: string, log: Log): Promise<Omit<Storage, 'path' | 'disk' | 'endWriting'>> {
  const changes = createChangeTable()
  // First: it makes the tables.
  const writes = await openWriteSide({ ...writeRulesOf(config), sqlitePath: url, engine: postgres }, systemClock, log)
  const lease = await takeRelayLease(url, {
    ttlMs: LEASE_MS,
    onWaiting: (holder) => log.warn({ holder }, 'another relay seems to use the database; waiting until its lease has lapsed'),
  }).catch(async (error: unknown) => {
    await writes.close()
    throw error
  })
  const openQueue = (atOnce: number) =>
    queueInProcess(
      async (batch: readonly Incoming[]) => {
        const { touchedParcels, ...report } = await writes.record(batch)
        tellChanged(changes, touchedParcels)
        return report
      },
      config.limits.batch,
      { atOnce },
    )
  const { record: _record, close, ...verbs } = writes
  return {
    changes,
    reads: postgres.openReadStore(url),
    write: {
      ...verbs,
      async close() {
        await close()
        await lease.release()
      },
      async reprocess(request) {
        const done = await writes.reprocess(request)
        if (done.kind === 'done') tellChanged(changes, done.report.touchedParcels)
        return done
      },
    },
    writer: { queue: openQueue(1), drainReplies: () => undefined, died: lease.lost },
    receiver: hostReceiverInProcess(config, openQueue(BATCHES_AT_ONCE), log),
  }
}

function hostReceiverInProcess(config: Config, queue: ReturnType<typeof queueInProcess>, log: Log): HostedReceiver {
  const diskSign = createDiskSign()
  const { news, ...verbs } = openReceiveSide(receiveSettingsOf(config), {
    queue,
    disk: { trouble: () => troubleOn(diskSign) },
    clock: systemClock,
    log,
  })
  return {
    verbs: { ...verbs, close: async () => undefined },
    died: new Promise(() => undefined),
    diskSign,
    follow(tell) {
      const forward = async (): Promise<void> => {
        for (;;) tell(await news())
      }
      void forward()
    },
  }
}
