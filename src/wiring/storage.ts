import type { Config } from '../config/config.ts'
import type { Log } from '../flow/ports.ts'
import { createDiskWatch, refuseWhenLost } from '../runtime/disk-watch.ts'
import { createDiskLook } from '../store/sqlite/sqlite-disk.ts'
import { sqlite } from '../store/sqlite/sqlite-engine.ts'
import { followLinks } from '../store/sqlite/sqlite-identity.ts'
import { permissionWarnings } from '../store/sqlite/sqlite-permissions.ts'
import type { Closing } from './closing.ts'
import { startThreads, type Threads } from './threads.ts'

const LOG_BYTES_WARN = 256 * 1024 * 1024

export type Storage = Awaited<ReturnType<typeof openStorage>>

/** The store, the threads that write to it and receive for it, and the watch on its disk. */
export async function openStorage(config: Config, log: Log, closing: Closing, threads?: Threads) {
  if (config.store.engine !== 'sqlite') throw new Error('this version keeps its data in SQLite only')
  const { changes, ...starting } = threads ?? startThreads(config, config.store.path)
  // In this order: without a writer there is nothing to receive for, and it is the one that says why.
  const writer = await starting.writer
  closing.add(() => writer.verbs.close())
  const receiver = await starting.receiver
  const path = followLinks(config.store.path)
  for (const warning of permissionWarnings(path)) log.warn({}, warning)
  const reads = sqlite.openReadStore(path)
  closing.add(() => reads.close())
  closing.add(() => receiver.verbs.close())
  const disk = createDiskWatch(
    { measure: createDiskLook(path), sign: receiver.diskSign, log },
    { freeBytesMin: config.limits.freeSpaceBytesMin, logBytesWarn: LOG_BYTES_WARN },
  )
  await disk.check()
  return { changes, writer, receiver, path, reads, disk, write: refuseWhenLost(writer.verbs, disk) }
}

/** What is written at the start: a store that opens may still take no writes. */
export async function firstWrite<T>(storePath: string, written: Promise<T>): Promise<T> {
  return await written.catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : 'unknown cause'
    if (!reason.includes('SQLITE_')) throw cause
    throw new Error(`store: ${storePath} could be opened but takes no writes (${reason}). Nothing was deleted. Look at the disk.`, {
      cause,
    })
  })
}
