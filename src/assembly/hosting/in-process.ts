import type { Config } from '../../core/config/config.ts'
import type { Incoming } from '../../core/domain/history/recording.ts'
import { createSharedModel } from '../../core/flow/polling/shared-model.ts'
import type { Clock, Log } from '../../core/flow/ports.ts'
import { createDiskSign, troubleOn } from '../../core/runtime/disk-watch.ts'
import { queueInProcess } from '../../core/runtime/group-commit.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { createChangeTable, tellChanged } from '../../core/runtime/threads/change-table.ts'
import { openReceiveSide, type Receiver, receiveSettingsOf } from '../../core/wiring/hosting/receive-side.ts'
import type { SharedStore, Storage } from '../../core/wiring/storage.ts'
import { createLostCommits } from '../../server/postgres/admin/lost-commits.ts'
import { postgresMoves } from '../../server/postgres/moving/postgres-moves.ts'
import { openSharedCarrier, postgres } from '../../server/postgres/postgres-engine.ts'
import { watchServer } from '../../server/postgres/server-watch.ts'
import { openReplicas, type Replicas } from '../../server/replicas/replicas.ts'
import { createRefusalSamples } from '../../upkeep/refusals/refusal-samples.ts'
import { assembleWriteSide, openModel, writeRulesOf } from '../write-side.ts'

/**
 * How many batches are under way at once. While one waits for the server, others are computed and sent. A higher number would not help, because
 * all replicas together commit one batch at a time. The batches would only be smaller, and each costs a set of statements.
 */
const BATCHES_AT_ONCE = 3

interface HostedInProcess extends Omit<Storage, 'path' | 'disk' | 'endWriting' | 'threads'> {
  readonly shared: SharedStore
}

/** Hosts writing and receiving on this thread, for a store on a server. No other thread is needed, because the server does the long work. */
export async function hostInProcess(config: Config, url: string, log: Log): Promise<HostedInProcess> {
  const changes = createChangeTable()
  const changed = (parcelIds: readonly number[]) => tellChanged(changes, parcelIds)
  const watch = watchServer(url)
  let replicas: Replicas | null = null
  // Open the store first, because it creates the tables.
  const lostCommits = createLostCommits()
  const store = await postgres.openWriteStore(url, { replicaId: () => replicas?.id() ?? null, lostCommits }, watch)
  const joined = await openReplicas(url, { watch, lostCommits }, config, log).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  replicas = joined.replicas
  const { clock } = joined
  const parts = await openModel(store, { clock, log })
  const model = createSharedModel({
    table: joined.lessons,
    keeper: parts.model,
    checkpoint: parts.checkpoint,
    isPoller: () => joined.replicas.holds('poller'),
    replicaId: joined.replicas.id,
    log,
  })
  const writes = assembleWriteSide({ ...parts, model: model.keeper, checkpoint: model.checkpoint, changed }, writeRulesOf(config))
  const record = async (batch: readonly Incoming[]) => {
    const { touchedParcels, ...report } = await writes.record(batch)
    changed(touchedParcels)
    return report
  }
  const batchesAtOnce = () => Math.ceil(BATCHES_AT_ONCE / joined.replicas.count())
  const { record: _record, close, ...verbs } = writes
  const { flights, close: closeShared, ...carrier } = openSharedCarrier(url, watch)
  return {
    clock,
    replicas,
    changes,
    shared: { carrier, flights, model, replicas, clearMoves: () => postgresMoves.clear(url, systemClock.now(), watch) },
    reads: postgres.openReadStore(url, watch, joined.replicas.isLive),
    write: {
      ...verbs,
      async close() {
        await Promise.all([close(), closeShared()])
        await joined.replicas.leave()
      },
      async reprocess(request) {
        const done = await writes.reprocess(request)
        if (done.kind === 'done') changed(done.report.touchedParcels)
        return done
      },
    },
    queue: queueInProcess(record, config.limits.batch),
    receiver: hostReceiverInProcess(config, queueInProcess(record, config.limits.batch, batchesAtOnce), { clock, log }),
  }
}

interface ReceiverPorts {
  readonly clock: Clock
  readonly log: Log
}

function hostReceiverInProcess(config: Config, queue: ReturnType<typeof queueInProcess>, { clock, log }: ReceiverPorts): Receiver {
  const diskSign = createDiskSign()
  const disk = { trouble: () => troubleOn(diskSign) }
  const { news, ...verbs } = openReceiveSide(receiveSettingsOf(config), { queue, disk, clock, log, examine: createRefusalSamples })
  return {
    verbs,
    diskSign,
    forwardNews(tell) {
      const forward = async (): Promise<void> => {
        for (;;) tell(await news())
      }
      void forward()
    },
  }
}
