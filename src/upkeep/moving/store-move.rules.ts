import { createHash } from 'node:crypto'
import { z } from 'zod'
import { parseStoredAs } from '../../core/domain/json-body.ts'
import type { CarrierMemory } from '../../core/domain/polling/call-budget.ts'

declare module '../../core/domain/admin/job.ts' {
  interface JobTasks {
    readonly move: MoveJobTask
  }
}

/** Moves the store; `to` is the new store's address, without a password. */
export interface MoveJobTask {
  readonly kind: 'move'
  readonly to: string
}

/** A value of a stored row. Numbers are whole numbers. */
export type Cell = string | number | Uint8Array | null

/** The values of the primary key come first. */
export type StoredRow = readonly Cell[]

/** Facts that each engine stores in its own form: the highest number of each kind that was used, and what the relay remembers of the carrier. */
export interface StoreNumbers {
  readonly sequence: number
  readonly parcel: number
  readonly inbox: number
  readonly endpoint: number
  readonly delivery: number
  readonly job: number
  /** Null: the relay remembers nothing, or what it remembers cannot be parsed and is copied unchanged with the settings. */
  readonly carrier: CarrierMemory | null
}

/** The steps of a move, in order. At `waiting`, everything but the last changes has been copied and checked. */
export type MoveStep = 'copying' | 'catching_up' | 'verifying' | 'waiting' | 'switching'

export const MOVE_WAS_STOPPED = 'The relay was stopped before the switch. The store has stayed in use, and the move can be begun again.'

export const MOVE_WAS_CANCELLED = 'The move was cancelled before its switch.'

/** `done` and `total` count the rows of the present step. */
export interface MoveProgress {
  readonly step: MoveStep
  readonly done: number
  readonly total: number
}

/** Different keys have different texts. */
export function keyTextOf(key: StoredRow): string {
  return JSON.stringify(key.map((cell) => (cell instanceof Uint8Array ? { hex: Buffer.from(cell).toString('hex') } : cell)))
}

/** The same rows in the same order have the same hash in both engines. */
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

const leftSchema = z.object({
  /** The path of the file, or the name of the database. */
  name: z.string(),
  /** When the relay moved away from it, epoch milliseconds. */
  atMs: z.number(),
})

/** A store that the relay has moved away from. It keeps its data until somebody deletes it. */
export type LeftStore = Readonly<z.infer<typeof leftSchema>>

/** At most this many stores are remembered. The relay forgets the stores that it left first. */
const REMEMBERED_MAX = 100

/** Parses the stored list of left stores. A text that cannot be parsed counts as an empty list. */
export function parseLeftStores(text: string): readonly LeftStore[] {
  return parseStoredAs(z.array(leftSchema), text) ?? []
}

/** Adds a store to the list of left stores. `current`: the name of the store in use. It is removed from the list. */
export function addLeftStore(known: readonly LeftStore[], left: LeftStore, current: string): readonly LeftStore[] {
  return [...known, left]
    .filter(({ name }, at, all) => name !== current && all.findLastIndex((one) => one.name === name) === at)
    .slice(-REMEMBERED_MAX)
}
