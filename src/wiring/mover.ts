import type { Mover } from '../flow/admin/manage-moves.ts'
import { hostOnThread } from '../runtime/threads/thread.ts'
import { movesOf, type StorePlace } from './store-places.ts'

/** Start data of the mover's thread. */
export interface MoverData {
  readonly from: StorePlace
  readonly to: StorePlace
  readonly moveId: string
  readonly atMs: number
  /** What the old store keeps of the new place, to be followed from there. */
  readonly address: string
}

/** What the mover's thread does. */
export interface MoverVerbs extends Omit<Mover, 'to'> {
  /** Opens both stores and takes the new one. */
  open(): Promise<void>
}

const VERBS = ['open', 'advance', 'switchOver', 'abandon', 'close'] as const
/** Pages of some megabytes live for one batch. */
const YOUNG_MB = 32

/** Hosts a move on a thread of its own. Rejects if one of the stores cannot be opened, or the new one holds something. */
export async function hostMover(data: MoverData): Promise<Mover> {
  // The extension of this file, because sources run as `.ts` in development and as `.js` from `dist`.
  const file = new URL(`./mover-thread${import.meta.url.slice(-3)}`, import.meta.url)
  const { verbs } = await hostOnThread<MoverVerbs>(file, { name: 'mover', data, youngMb: YOUNG_MB }, VERBS)
  let closed: Promise<void> | null = null
  const close = () => {
    closed ??= verbs.close()
    return closed
  }
  try {
    await verbs.open()
  } catch (error) {
    await close()
    throw error
  }
  return { ...verbs, to: movesOf(data.to).nameOf(data.to.place), close }
}
