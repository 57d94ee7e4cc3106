import { MOVED_TABLES } from '../../../upkeep/moving/moved-tables.rows.ts'
import type { MoveClient } from './postgres-move-client.ts'
import { BESIDE_WRITERS, locking } from './postgres-move-locks.ts'
import {
  dropMark,
  dropMoveParts,
  failMoves,
  isBeingMoved,
  leaveMark,
  lockMark,
  noteLeftStore,
  readMark,
  stopKeepingChanges,
} from './postgres-move-mark.ts'

/** Whether a move of this store has begun, and no relay works on it any more. */
export async function wasLeft(client: MoveClient): Promise<boolean> {
  const state = (await readMark(client))?.state
  return (state === 'copying' || state === 'pausing') && !(await isBeingMoved(client))
}

/**
 * Ends a move that has not switched yet. `isToEnd` decides while the mark is locked, because the switch may have happened since the caller
 * looked. First the pause and the job end. Then everything that the move has added to the tables is dropped. If other transactions keep a lock
 * for too long, this function rejects, and the caller may call it again.
 */
export async function endMove(client: MoveClient, failure: string, nowMs: number, isToEnd: () => Promise<boolean>): Promise<void> {
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (!(await isToEnd())) return
    await leaveMark(client)
    await failMoves(client, failure, nowMs)
  })
  // Each table has a transaction to itself, so that no lock is held during the wait for another. The mark is read each time, because the
  // next move may have begun, and its database functions have the same names.
  for (const table of MOVED_TABLES)
    await locking(client, BESIDE_WRITERS, async () => {
      await lockMark(client)
      if (await wasLeft(client)) await stopKeepingChanges(client, table)
    })
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (!(await wasLeft(client))) return
    await dropMoveParts(client)
    await dropMark(client)
  })
}

/** Puts a store back into use if it was moved. `name`: its name in messages. */
export async function undoMove(
  client: MoveClient,
  failure: string,
  { name, nowMs }: { readonly name: string; readonly nowMs: number },
): Promise<void> {
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    const mark = await readMark(client)
    if (mark?.state !== 'moved') return
    await dropMoveParts(client)
    await noteLeftStore(client, { name: mark.peer, atMs: nowMs }, name)
    await dropMark(client)
    await failMoves(client, failure, nowMs)
  })
}

/** Removes the mark from a new store that is complete. Then it opens like any other store. */
export async function releaseMark(client: MoveClient, moveId: string): Promise<void> {
  const isReceiving = async () => {
    const mark = await readMark(client)
    return mark?.state === 'receiving' && mark.moveId === moveId
  }
  if (!(await isReceiving())) return
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (await isReceiving()) await dropMark(client)
  })
}
