import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { serveVerbs } from '../../core/runtime/threads/thread.ts'
import { SERVER_STORES } from '../../server/postgres/server-stores.ts'
import { createStoreMove, type StoreMove } from '../../upkeep/moving/move-store.ts'
import type { MoverData, MoverVerbs } from '../../upkeep/moving/open-moves.ts'
import { movesOf } from '../../upkeep/moving/store-in-use.ts'
import type { MoveSource, MoveTarget } from '../../upkeep/moving/store-moves.rows.ts'

/** The thread that copies a store, so that reading and comparing all of it does not delay answers. */
if (parentPort === null) throw new Error('this file runs only as the mover thread')
// Only `startMover` starts this thread, with this data.
const { from, to, moveId, atMs, address, replicaId } = workerData as MoverData

const side = { moveId, atMs, address, replicaId }
let source: MoveSource | null = null
let target: MoveTarget | null = null
let opened: StoreMove | null = null

function open<Part>(part: Part | null): Part {
  if (part === null) throw new Error('the move is not open')
  return part
}

const verbs: MoverVerbs = {
  async openSource() {
    source = await movesOf(from, SERVER_STORES).openSource(from.address, { ...side, peer: movesOf(to, SERVER_STORES).nameOf(to.address) })
    await source.announce()
  },
  async openTarget() {
    const found = await movesOf(to, SERVER_STORES).openTarget(to.address, {
      ...side,
      peer: movesOf(from, SERVER_STORES).nameOf(from.address),
    })
    await found.claim().catch(async (error: unknown) => {
      // Close the store, because another process may be waiting for its lock.
      await found.close()
      throw error
    })
    target = found
    opened = createStoreMove({ source: open(source), target, monotonic: systemClock.monotonic })
  },
  advance: async () => await open(opened).advance(),
  pause: async () => await open(opened).pause(),
  switchOver: async (job) => await open(opened).switchOver(job),
  abandon: async (failure, nowMs) => await open(source).abandon(failure, nowMs),
  async close() {
    const both = [target, source]
    target = null
    source = null
    opened = null
    for (const store of both) await store?.close()
  },
}
serveVerbs(parentPort, { ...verbs })
