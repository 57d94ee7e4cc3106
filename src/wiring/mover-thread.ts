import { parentPort, workerData } from 'node:worker_threads'
import type { MoveSource, MoveTarget } from '../flow/admin/move-ports.ts'
import { createStoreMove, type StoreMove } from '../flow/admin/move-store.ts'
import { systemClock } from '../runtime/system-clock.ts'
import { serveVerbs } from '../runtime/threads/thread.ts'
import type { MoverData, MoverVerbs } from './mover.ts'
import { movesOf } from './store-places.ts'

/** The thread that copies a store, so that reading and comparing all of it does not delay answers. */
if (parentPort === null) throw new Error('this file runs only as the mover thread')
// Only `mover.ts` starts this thread, with this data.
const { from, to, moveId, atMs, address } = workerData as MoverData

interface Opened {
  readonly source: MoveSource
  readonly target: MoveTarget
  readonly move: StoreMove
}

let opened: Opened | null = null

async function open(): Promise<Opened> {
  const side = { moveId, atMs, address }
  const source = await movesOf(from).openSource(from.place, { ...side, peer: movesOf(to).nameOf(to.place) })
  try {
    const target = await movesOf(to).openTarget(to.place, { ...side, peer: movesOf(from).nameOf(from.place) })
    const move = createStoreMove({ source, target, monotonic: systemClock.monotonic })
    return { source, target, move }
  } catch (error) {
    await source.close()
    throw error
  }
}

function current(): Opened {
  if (opened === null) throw new Error('the move is not open')
  return opened
}

const verbs: MoverVerbs = {
  async open() {
    opened = await open()
    await opened.target.claim()
  },
  advance: async () => await current().move.advance(),
  switchOver: async (job) => await current().move.switchOver(job),
  abandon: async (failure, nowMs) => await current().source.abandon(failure, nowMs),
  async close() {
    const open = opened
    opened = null
    await open?.target.close()
    await open?.source.close()
  },
}
serveVerbs(parentPort, { ...verbs })
