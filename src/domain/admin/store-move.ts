import { createHash } from 'node:crypto'
import type { CarrierMemory } from '../polling/carrier-memory.ts'

/** A value of a stored row. Whole numbers only. */
export type Cell = string | number | Uint8Array | null

/** The values of a stored row, those of its primary key first. */
export type StoredRow = readonly Cell[]

/** Facts that each engine keeps in its own form: the highest number of each kind (the next one is higher), and the carrier's limits. */
export interface StoreNumbers {
  readonly sequence: number
  readonly parcel: number
  readonly inbox: number
  readonly endpoint: number
  readonly delivery: number
  readonly job: number
  /** The calls of the day, pauses and refusals; null: there are none, or the copied settings contain them. */
  readonly carrier: CarrierMemory | null
}

/** The steps of a move, in order. In `waiting`, everything except the last changes is copied and checked. */
export type MoveStep = 'copying' | 'catching_up' | 'verifying' | 'waiting' | 'switching'

/** Why a move's job has failed if its relay was stopped or killed. */
export const MOVE_WAS_STOPPED = 'The relay was stopped before the switch. The store has stayed in use, and the move can be begun again.'

/** Why a move ends without a switch if its job is cancelled at the last moment. */
export const MOVE_WAS_CANCELLED = 'The move was cancelled before its switch.'

/** The progress of a move. `done` and `total` count rows of the present step. */
export interface MoveProgress {
  readonly step: MoveStep
  readonly done: number
  readonly total: number
}

/** A text for a primary key. Only equal keys have equal texts. */
export function keyTextOf(key: StoredRow): string {
  return JSON.stringify(key.map((cell) => (cell instanceof Uint8Array ? { hex: Buffer.from(cell).toString('hex') } : cell)))
}

/** A hash over rows in order. It is the same for the same rows in any store. Each value counts with its type and length. */
export function digestOfRows(rows: readonly StoredRow[]): string {
  const hash = createHash('sha256')
  for (const row of rows) {
    hash.update(`row ${row.length}\n`)
    for (const cell of row) {
      if (cell === null) hash.update('null\n')
      else if (typeof cell === 'number') hash.update(`number ${cell}\n`)
      else {
        const bytes = typeof cell === 'string' ? Buffer.from(cell) : cell
        hash.update(`${typeof cell === 'string' ? 'text' : 'bytes'} ${bytes.length}\n`).update(bytes)
      }
    }
  }
  return hash.digest('hex')
}
