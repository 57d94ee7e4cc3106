import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { addressOf, movesOf, readAddress, type StoreAddress } from '../../assembly/storage/store-address.ts'
import type { Config } from '../../core/config/config.ts'
import { storeAddressProblem } from '../../core/config/values.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Log } from '../../core/flow/ports.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { createManageMoves, type ManageMovesPorts, type Mover } from './manage-moves.ts'
import { hostMover } from './mover.ts'
import { refuseMove } from './refuse-move.ts'
import { encodeMoveAddress, tryStoreFile, untilReachable } from './store-in-use.ts'

const LOOK_EVERY_MS = 100

type Parts = Pick<Relay, 'reads' | 'write' | 'replicas' | 'disk' | 'endpointKeys' | 'settings' | 'log' | 'closing'>

function readTarget(text: string): StoreAddress {
  const problem = storeAddressProblem(text)
  const address = readAddress(text)
  if (problem === null && address !== null) return address
  throw new AppError('not_movable', `The new store ${problem}.`)
}

export function openMoves(config: Config, parts: Parts & Pick<Relay, 'atRest'>, handOver: ManageMovesPorts['handOver']) {
  const { write, replicas, disk, settings, log, closing } = parts
  async function openMover(text: string, signal: AbortSignal): Promise<Mover> {
    const to = readTarget(text)
    await tryStoreFile(to, signal).catch((cause: unknown) => {
      throw new AppError('not_movable', cause instanceof Error ? cause.message : 'The new store cannot be opened.', { cause })
    })
    const known = { from: addressOf(config), to, moveId: randomUUID(), atMs: systemClock.now(), replicaId: replicas.id() }
    const check = () => refuseMove({ ...parts, keyFile: parts.atRest.keyFile }, { toDatabase: to.engine === 'postgres' })
    return await hostMover({ ...known, address: (await encodeMoveAddress(settings(), to)) ?? '' }, { check, signal })
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
    /** Called when another replica moves the store. */
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
