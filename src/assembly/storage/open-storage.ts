import type { Config } from '../../core/config/config.ts'
import type { Incoming } from '../../core/domain/history/recording.ts'
import { createSharedModel } from '../../core/flow/polling/shared-model.ts'
import type { Clock, Log } from '../../core/flow/ports.ts'
import { createChangeTable, tellChanged } from '../../core/runtime/answer-cache.ts'
import {
  createDiskSign,
  createDiskWatch,
  type DiskWatch,
  LOG_BYTES_WARN,
  refuseWhenLost,
  showMoving,
  troubleOn,
  UNMEASURED,
} from '../../core/runtime/disk-watch.ts'
import { queueInProcess } from '../../core/runtime/group-commit.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { createDiskLook, followLinks } from '../../core/store/sqlite/file.ts'
import { permissionWarnings } from '../../core/store/sqlite/whole-file.ts'
import type { Closing } from '../../core/wiring/closing.ts'
import { openReceiveSide, type Receiver, receiveSettingsOf } from '../../core/wiring/hosting/receive-side.ts'
import type { SharedStore, Storage } from '../../core/wiring/opened-storage.ts'
import { REPLICA, replicaConfigOf } from '../../core/wiring/replica-name.ts'
import { createLostCommits } from '../../server/postgres/admin/lost-commits.ts'
import { postgresMoves } from '../../server/postgres/moving/postgres-moves.ts'
import { openSharedCarrier, postgres } from '../../server/postgres/postgres-engine.ts'
import { nameDatabase } from '../../server/postgres/postgres-pool.ts'
import { watchServer } from '../../server/postgres/server-watch.ts'
import { createSoleMembership } from '../../server/replicas/membership.ts'
import { openReplicas, type Replicas } from '../../server/replicas/replicas.ts'
import { sqliteMoves } from '../../upkeep/moving/sqlite-moves.ts'
import { createRefusalSamples } from '../../upkeep/refusals/refusal-samples.ts'
import { sqlite } from '../../upkeep/sqlite-engine.ts'
import { startThreads, type Threads } from '../hosting/threads.ts'
import { assembleWriteSide, openModel, writeRulesOf } from '../open-write-side.ts'

const REPORT_EVERY_MS = 10_000

/** Opens the store. SQLite needs threads for writing and receiving, and a watch on its disk. A PostgreSQL server needs neither. */
export async function openStorage(config: Config, log: Log, closing: Closing, threads?: Threads): Promise<Storage> {
  const { store } = config
  const opening =
    store.engine === 'sqlite'
      ? openSqliteStorage(config, store.path, { log, closing, threads: threads ?? startThreads(config, store.path) })
      : openPostgresStorage(config, store.url.reveal(), log, closing)
  const path = store.engine === 'sqlite' ? store.path : nameDatabase(store.url.reveal())
  return await reportWaiting(opening, () =>
    log.info({ store: path }, 'the store is still being opened: the relay waits for its recovery, its migration or its server'),
  )
}

/** Logs regularly while the store is being opened. There is no deadline, because recovery and migration may take any time. */
async function reportWaiting<T>(opening: Promise<T>, report: () => void): Promise<T> {
  const timer = setInterval(report, REPORT_EVERY_MS)
  try {
    return await opening
  } finally {
    clearInterval(timer)
  }
}

interface SqlitePorts {
  readonly log: Log
  readonly closing: Closing
  readonly threads: Threads
}

async function openSqliteStorage(config: Config, given: string, { log, closing, threads }: SqlitePorts): Promise<Storage> {
  const { changes, ...starting } = threads
  // Await the writer first, because its error says why the store cannot be opened.
  const writer = await starting.writer
  const closeWriter = once(() => writer.verbs.close())
  closing.add(closeWriter, 'serving')
  const receiver = await starting.receiver
  const path = followLinks(given)
  for (const warning of permissionWarnings(path)) log.warn({}, warning)
  await sqliteMoves.clear(path, systemClock.now())
  const reads = sqlite.openReadStore(path)
  closing.add(() => reads.close(), 'serving')
  closing.add(() => receiver.verbs.close(), 'serving')
  const disk = createDiskWatch(
    { measure: createDiskLook(path), sign: receiver.diskSign, log },
    { freeBytesMin: config.limits.freeSpaceBytesMin, logBytesWarn: LOG_BYTES_WARN },
  )
  await disk.check()
  return {
    clock: systemClock,
    replicas: createSoleMembership({ reads, clock: systemClock }, REPLICA, replicaConfigOf(config)),
    changes,
    queue: writer.queue,
    receiver,
    threads: { drainReplies: writer.drainReplies, died: Promise.race([writer.died, receiver.died]) },
    path,
    reads,
    disk,
    write: refuseWhenLost(writer.verbs, disk),
    shared: null,
    endWriting: createEndWriting(receiver, closeWriter),
  }
}

function createEndWriting({ diskSign, verbs }: Storage['receiver'], close: () => Promise<void>): Storage['endWriting'] {
  return async () => {
    showMoving(diskSign)
    await verbs.drained()
    await close()
  }
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null
  return () => {
    done ??= work()
    return done
  }
}

/** The watch for a store on PostgreSQL. The relay does not watch the server's disk. */
const NO_DISK: DiskWatch = {
  check: async () => undefined,
  state: () => UNMEASURED,
  trouble: () => null,
}

async function openPostgresStorage(config: Config, url: string, log: Log, closing: Closing): Promise<Storage> {
  const hosted = await hostInProcess(config, url, log)
  // If this relay was killed during a move, remove what is left of the move. The janitor does so for other replicas, after their leases lapse.
  await hosted.shared
    .clearMoves()
    .catch((err: unknown) => log.warn({ err }, 'could not remove the remains of a move that was killed; the relay tries again'))
  const closeWriter = once(() => hosted.write.close())
  closing.add(closeWriter, 'serving')
  closing.add(() => hosted.reads.close(), 'serving')
  const disk = { ...NO_DISK, trouble: () => troubleOn(hosted.receiver.diskSign) }
  return {
    ...hosted,
    threads: null,
    path: nameDatabase(url),
    disk,
    write: refuseWhenLost(hosted.write, disk),
    endWriting: createEndWriting(hosted.receiver, closeWriter),
  }
}

/**
 * How many batches are under way at once. While one waits for the server, others are computed and sent. A higher number would not help, because
 * all replicas together commit one batch at a time. The batches would only be smaller, and each costs a set of statements.
 */
const BATCHES_AT_ONCE = 3

interface HostedInProcess extends Omit<Storage, 'path' | 'disk' | 'endWriting' | 'threads'> {
  readonly shared: SharedStore
}

/** Hosts writing and receiving on this thread, for a store on a server. No other thread is needed, because the server does the long work. */
async function hostInProcess(config: Config, url: string, log: Log): Promise<HostedInProcess> {
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
