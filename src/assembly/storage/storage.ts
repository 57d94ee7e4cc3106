import type { Config } from '../../core/config/config.ts'
import type { Log } from '../../core/flow/ports.ts'
import {
  createDiskWatch,
  type DiskWatch,
  LOG_BYTES_WARN,
  refuseWhenLost,
  showMoving,
  troubleOn,
  UNMEASURED,
} from '../../core/runtime/disk-watch.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { createDiskLook, followLinks } from '../../core/store/sqlite/file.ts'
import { permissionWarnings } from '../../core/store/sqlite/whole-file.ts'
import type { Closing } from '../../core/wiring/closing.ts'
import { REPLICA, replicaConfigOf } from '../../core/wiring/membership.ts'
import type { Storage } from '../../core/wiring/storage.ts'
import { nameDatabase } from '../../server/postgres/postgres-pool.ts'
import { createSoleMembership } from '../../server/replicas/membership.ts'
import { sqliteMoves } from '../../upkeep/moving/sqlite-moves.ts'
import { sqlite } from '../../upkeep/sqlite-engine.ts'
import { hostInProcess } from '../hosting/in-process.ts'
import { startThreads, type Threads } from '../hosting/threads.ts'

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
