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

/** Opens the store with its writer and receiver threads, and watches its disk. */
export async function openStorage(config: Config, log: Log, closing: Closing, threads?: Threads) {
  if (config.store.engine !== 'sqlite') throw new Error('this version supports only SQLite')
  const { changes, ...starting } = threads ?? startThreads(config, config.store.path)
  // The writer first, because its error says why the store cannot be opened.
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

/** Writes to the store at the start, because a store that opens may still refuse writes. */
export async function firstWrite<T>(storePath: string, written: Promise<T>): Promise<T> {
  return await written.catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : 'unknown cause'
    if (!reason.includes('SQLITE_')) throw cause
    throw new Error(`store: ${storePath} can be opened but not written (${reason}). Nothing was deleted. Check the disk.`, {
      cause,
    })
  })
}
