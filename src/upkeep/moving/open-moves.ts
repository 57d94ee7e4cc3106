import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { DutiesPorts } from '../../assembly/duties.ts'
import { addressOf, movesOf, readAddress, type StoreAddress } from '../../assembly/storage/store-address.ts'
import type { Config } from '../../core/config/config.ts'
import { storeAddressProblem } from '../../core/config/values.ts'
import { hasUnended, UNENDED_MAX } from '../../core/domain/admin/job.ts'
import { counted } from '../../core/domain/amounts.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Log } from '../../core/flow/ports.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import type { AtRest } from '../../core/wiring/at-rest-keys.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { createManageMoves, type ManageMoves, type ManageMovesPorts, type Mover } from './manage-moves.ts'
import { encodeMoveAddress } from './move-address.ts'
import { hostMover } from './mover.ts'
import { tryStoreFile } from './try-store-file.ts'
import { untilReachable } from './until-reachable.ts'

const LOOK_EVERY_MS = 100

type Parts = Pick<Relay, 'reads' | 'write' | 'replicas' | 'disk' | 'endpointKeys' | 'settings' | 'log' | 'closing'>

export interface Moves extends Pick<DutiesPorts, 'awaitMove'> {
  readonly manage: ManageMoves
}

function readTarget(text: string): StoreAddress {
  const problem = storeAddressProblem(text)
  const address = readAddress(text)
  if (problem === null && address !== null) return address
  throw new AppError('not_movable', `The new store ${problem}.`)
}

export function openMoves(
  config: Config,
  { reads, write, replicas, disk, endpointKeys, settings, log, closing }: Parts,
  { keyFile, handOver }: Pick<AtRest, 'keyFile'> & Pick<ManageMovesPorts, 'handOver'>,
): Moves {
  /** Throws if the relay could not decrypt the keys of endpoints after the move, which copies them in encrypted form. */
  async function refuseLostKeys(toDatabase: boolean): Promise<void> {
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

  async function refuse(to: StoreAddress): Promise<void> {
    await refuseLostKeys(to.engine === 'postgres')
    if (hasUnended(await reads.listJobs({ before: null, limit: UNENDED_MAX }), 'backup'))
      throw new AppError('not_movable', 'A backup of the store is being made. Wait until it is done, or cancel its job.')
    const others = (await replicas.list()).length - 1
    if (to.engine === 'sqlite' && others > 0)
      throw new AppError(
        'not_movable',
        `A file serves one relay, and ${counted(others, 'other relay uses', 'other relays use')} this database. Stop all but this relay first.`,
      )
  }

  async function openMover(text: string, signal: AbortSignal): Promise<Mover> {
    const to = readTarget(text)
    await tryStoreFile(to, signal).catch((cause: unknown) => {
      throw new AppError('not_movable', cause instanceof Error ? cause.message : 'The new store cannot be opened.', { cause })
    })
    const known = { from: addressOf(config), to, moveId: randomUUID(), atMs: systemClock.now(), replicaId: replicas.id() }
    return await hostMover({ ...known, address: (await encodeMoveAddress(settings(), to)) ?? '' }, { check: () => refuse(to), signal })
  }

  const manage = createManageMoves({
    write,
    openMover,
    handOver,
    untilMoved: () => untilMoved(addressOf(config), log),
    trouble: disk.trouble,
    clock: systemClock,
    pause,
    log,
  })
  closing.add(() => manage.stop())
  return {
    manage,
    awaitMove() {
      manage.awaitMove().catch((err: unknown) => log.error({ err }, 'the relay cannot wait for a move of the store by another replica'))
    },
  }
}

/** As long as the replica that moves the store may take for the switch. */
const AWAY_MS_MAX = 10_000

/** Resolves when a move by another replica has ended. Rejects if the server cannot be reached for `AWAY_MS_MAX`. */
async function untilMoved(from: StoreAddress, log: Log): Promise<void> {
  for (;;) {
    const startedMs = systemClock.monotonic()
    const goesOn = () => systemClock.monotonic() - startedMs < AWAY_MS_MAX
    const isOver = await untilReachable(() => lookForEnd(from), { goesOn, log })
    if (isOver) return
    await pause(LOOK_EVERY_MS)
  }
}

async function lookForEnd(from: StoreAddress): Promise<boolean> {
  const mark = await movesOf(from).readMark(from.address)
  if (mark?.state !== 'pausing') return true
  // If the replica that moves the store is gone, this ends its move, and the store stays in use.
  await movesOf(from).clear(from.address, systemClock.now())
  return false
}
