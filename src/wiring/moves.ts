import { randomUUID } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { AppError } from '../domain/errors.ts'
import { createManageMoves, type ManageMoves, type ManageMovesPorts, type Mover } from '../flow/admin/manage-moves.ts'
import type { EndpointKeys } from '../flow/delivery/endpoint-keys.ts'
import type { Log } from '../flow/ports.ts'
import { systemClock } from '../runtime/system-clock.ts'
import type { Closing } from './closing.ts'
import { encodeMoveAddress } from './move-address.ts'
import { hostMover } from './mover.ts'
import type { Storage } from './opened-storage.ts'
import { movesOf, placeOf, readPlace, type StorePlace } from './store-places.ts'

export interface MovesPorts {
  readonly storage: Pick<Storage, 'reads' | 'write'>
  readonly endpointKeys: Pick<EndpointKeys, 'check'>
  /** The name of the file with the at-rest key; null: the config names the keys. */
  readonly keyFile: string | null
  readonly handOver: ManageMovesPorts['handOver']
  readonly log: Log
  readonly closing: Closing
}

function placeIn(text: string): StorePlace {
  const place = readPlace(text)
  if (place !== null) return place
  throw new AppError('not_movable', 'The new place must be sqlite:PATH or postgres://user:password@host:5432/database.')
}

function namePlace(text: string): string {
  const place = placeIn(text)
  return movesOf(place).nameOf(place.place)
}

/** Moves of the store to another place. */
export function openMoves(config: Config, { storage, endpointKeys, keyFile, handOver, log, closing }: MovesPorts): ManageMoves {
  const { reads, write } = storage

  /** The keys of endpoints travel as they are, so the relay must be able to open them over there. */
  async function refuseLostKeys(toDatabase: boolean): Promise<void> {
    const isSealing = (await reads.listEndpoints()).some(({ keys }) => keys !== null)
    if (keyFile !== null && (toDatabase || isSealing)) {
      const why = toDatabase ? 'PostgreSQL needs secrets.atRestKeys' : 'the keys of endpoints are encrypted with a key beside the store'
      throw new AppError(
        'not_movable',
        `${why}. First write secrets: { atRestKeys: [{ file: PATH }] } with the path of ${keyFile}, or of a new key if there is no such file, and restart.`,
      )
    }
    const lost = await endpointKeys.check()
    if (lost !== null)
      throw new AppError('not_movable', `The keys of ${lost.endpoints} endpoints cannot be opened. Restore ${lost.where} first.`)
  }

  async function openMover(text: string): Promise<Mover> {
    const to = placeIn(text)
    await refuseLostKeys(to.engine === 'postgres')
    try {
      const address = await encodeMoveAddress(config, to)
      return await hostMover({ from: placeOf(config), to, moveId: randomUUID(), atMs: systemClock.now(), address })
    } catch (cause) {
      throw new AppError('not_movable', cause instanceof Error ? cause.message : 'The new store cannot be opened.', { cause })
    }
  }

  const moves = createManageMoves({ write, namePlace, openMover, handOver, clock: systemClock, log })
  closing.add(() => moves.stop())
  return moves
}
