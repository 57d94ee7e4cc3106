import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../../core/config/config.ts'
import { storeAddressProblem } from '../../core/config/values.ts'
import { hasUnended, UNENDED_MAX } from '../../core/domain/admin/job.ts'
import { counted } from '../../core/domain/amounts.ts'
import type { LostKeys } from '../../core/domain/delivery/endpoint-keys.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Log } from '../../core/flow/ports.ts'
import type { Reads, Writes } from '../../core/flow/relay-part.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import type { Hosted } from '../../core/runtime/threads/thread.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import type { ServerStores } from '../stores-on-servers.ts'
import { createManageMoves, type ManageMovesPorts, type Mover } from './manage-moves.ts'
import { addressOf, encodeMoveAddress, movesOf, readAddress, type StoreAddress, tryStoreFile, untilReachable } from './store-in-use.ts'

const LOOK_EVERY_MS = 100

type Parts = Pick<Relay, 'reads' | 'write' | 'replicas' | 'disk' | 'endpointKeys' | 'settings' | 'log' | 'closing'>

function readTarget(text: string): StoreAddress {
  const problem = storeAddressProblem(text)
  const address = readAddress(text)
  if (problem === null && address !== null) return address
  throw new AppError('not_movable', `The new store ${problem}.`)
}

interface MovesPorts extends Pick<ManageMovesPorts, 'handOver'> {
  readonly server: ServerStores
  /** Starts the thread that copies a store. */
  readonly startMover: (data: MoverData) => Promise<Pick<Hosted<MoverVerbs>, 'verbs' | 'end'>>
}

export function openMoves(config: Config, parts: Parts & Pick<Relay, 'atRest'>, { handOver, server, startMover }: MovesPorts) {
  const { write, replicas, disk, settings, log, closing } = parts
  async function openMover(text: string, signal: AbortSignal): Promise<Mover> {
    const to = readTarget(text)
    await tryStoreFile(to, signal).catch((cause: unknown) => {
      throw new AppError('not_movable', cause instanceof Error ? cause.message : 'The new store cannot be opened.', { cause })
    })
    const known = { from: addressOf(config), to, moveId: randomUUID(), atMs: systemClock.now(), replicaId: replicas.id() }
    const check = () => refuseMove({ ...parts, keyFile: parts.atRest.keyFile }, { toDatabase: to.engine === 'postgres' })
    const data = { ...known, address: (await encodeMoveAddress(settings(), to)) ?? '' }
    return { ...(await hostMover(data, await startMover(data), { check, signal })), to: movesOf(to, server).nameOf(to.address) }
  }

  const manage = createManageMoves({
    write,
    openMover,
    handOver,
    untilMoved: () => untilMoved(addressOf(config), log, server),
    trouble: disk.trouble,
    clock: systemClock,
    pause,
    log,
  })
  closing.add(() => manage.stop())
  return {
    manage,
    /** Called when another replica moves the store. */
    awaitMove() {
      manage.awaitMove().catch((err: unknown) => log.error({ err }, 'the relay cannot wait for a move of the store by another replica'))
    },
  }
}

/** As long as the replica that moves the store may take for the switch. */
const AWAY_MS_MAX = 10_000

/** Resolves when a move by another replica has ended. Rejects if the server cannot be reached for `AWAY_MS_MAX`. */
async function untilMoved(from: StoreAddress, log: Log, server: ServerStores): Promise<void> {
  for (;;) {
    const startedMs = systemClock.monotonic()
    const goesOn = () => systemClock.monotonic() - startedMs < AWAY_MS_MAX
    const isOver = await untilReachable(() => lookForEnd(from, server), { goesOn, log, server })
    if (isOver) return
    await pause(LOOK_EVERY_MS)
  }
}

async function lookForEnd(from: StoreAddress, server: ServerStores): Promise<boolean> {
  const mark = await movesOf(from, server).readMark(from.address)
  if (mark?.state !== 'pausing') return true
  // If the replica that moves the store is gone, this ends its move, and the store stays in use.
  await movesOf(from, server).clear(from.address, systemClock.now())
  return false
}

interface RefuseMovePorts extends Reads<'listEndpoints' | 'listJobs'>, Writes<'tombstoneKey'> {
  readonly replicas: { list(): Promise<readonly unknown[]> }
  readonly endpointKeys: { check(): Promise<LostKeys | null> }
  /** Returns the name of the key file; null: the config names the keys. */
  readonly keyFile: () => string | null
}

/** Throws `not_movable` if the store may not be moved to a database (`toDatabase`) or to a file. */
async function refuseMove(ports: RefuseMovePorts, { toDatabase }: { readonly toDatabase: boolean }): Promise<void> {
  await refuseLostKeys(ports, toDatabase)
  if (hasUnended(await ports.reads.listJobs({ before: null, limit: UNENDED_MAX }), 'backup'))
    throw new AppError('not_movable', 'A backup of the store is being made. Wait until it is done, or cancel its job.')
  const others = (await ports.replicas.list()).length - 1
  if (!toDatabase && others > 0)
    throw new AppError(
      'not_movable',
      `A file serves one relay, and ${counted(others, 'other relay uses', 'other relays use')} this database. Stop all but this relay first.`,
    )
}

/** Throws if the relay could not decrypt the keys of endpoints after the move, which copies them in encrypted form. */
async function refuseLostKeys({ reads, write, endpointKeys, keyFile }: RefuseMovePorts, toDatabase: boolean): Promise<void> {
  const hasTombstoneKey = (await write.tombstoneKey()).sealed !== null
  const isSealing = hasTombstoneKey || (await reads.listEndpoints()).some(({ keys }) => keys !== null)
  const file = keyFile()
  if (file !== null && (toDatabase || isSealing)) {
    const why = toDatabase
      ? 'PostgreSQL needs secrets.atRestKeys'
      : 'the keys of endpoints or of erased parcels are encrypted with a key beside the store'
    throw new AppError(
      'not_movable',
      `${why}. First write secrets: { atRestKeys: [{ file: PATH }] } with the path of ${file}, or of a new key if there is no such file, and reload.`,
    )
  }
  const lost = await endpointKeys.check()
  if (lost !== null)
    throw new AppError('not_movable', `The keys of ${lost.endpoints} endpoints cannot be opened. Restore ${lost.where} first.`)
}

export interface MoverData {
  readonly from: StoreAddress
  readonly to: StoreAddress
  readonly moveId: string
  readonly atMs: number
  /** The encoded address of the new store. The old store keeps it, for relays whose config still names the old store. */
  readonly address: string
  readonly replicaId: number
}

/** The functions of the mover's thread that other threads can call. */
export interface MoverVerbs extends Omit<Mover, 'to'> {
  openSource(): Promise<void>
  /** Opens the new store and reserves it for this move. Rejects if the store is not empty. */
  openTarget(): Promise<void>
}

const RETRY_AFTER_MS = 5000

interface MoverPorts {
  /** Throws if the store may not be moved. */
  readonly check: () => Promise<void>
  /** Aborted when nobody waits any longer for the stores to open. */
  readonly signal: AbortSignal
}

/**
 * Opens both stores of a move on its thread. Throws `not_movable` if the new store cannot be used, and `storage_unavailable` if the old store cannot be
 * moved now. Opens the old store first, so that the new store stays untouched if the old one cannot be moved.
 */
async function hostMover(
  data: MoverData,
  { verbs, end }: Awaited<ReturnType<MovesPorts['startMover']>>,
  { check, signal }: MoverPorts,
): Promise<Omit<Mover, 'to'>> {
  let closed: Promise<void> | null = null
  const closeAll = async () => {
    try {
      await verbs.close()
    } finally {
      // The thread may still be waiting for a server that does not answer.
      await end()
    }
  }
  const close = () => {
    closed ??= closeAll()
    return closed
  }
  const take = async () => {
    await check()
    await unlessAborted(verbs.openTarget(), signal).catch((cause: unknown) => {
      throw new AppError('not_movable', cause instanceof Error ? cause.message : 'The new store cannot be opened.', { cause })
    })
  }
  try {
    await unlessAborted(verbs.openSource(), signal).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message.replace(/^store: /, '').replace(/\.$/, '') : 'it cannot be opened'
      throw new AppError('storage_unavailable', `The store cannot be moved now: ${why}.`, { cause, retryAfterMs: RETRY_AFTER_MS })
    })
    await take().catch(async (error: unknown) => {
      await verbs.abandon('The new store could not be used.', data.atMs)
      throw error
    })
  } catch (error) {
    await close()
    throw error
  }
  return { ...verbs, close }
}

async function unlessAborted<T>(opening: Promise<T>, signal: AbortSignal): Promise<T> {
  const stopping = Promise.withResolvers<never>()
  const abort = () => stopping.reject(new Error('the relay is stopping'))
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await Promise.race([opening, stopping.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
