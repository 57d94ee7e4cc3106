import { MOVED_TABLES } from '../../moving/moved-tables.ts'
import type { MoveClient } from './postgres-move-client.ts'
import { BESIDE_WRITERS, locking } from './postgres-move-locks.ts'
import {
  dropMark,
  dropMoveParts,
  failMoves,
  isBeingMoved,
  leaveMark,
  lockMark,
  readMark,
  stopKeepingChanges,
} from './postgres-move-mark.ts'

/** Whether a move was begun that nobody goes on with. */
export async function wasLeft(client: MoveClient): Promise<boolean> {
  const state = (await readMark(client))?.state
  return (state === 'copying' || state === 'pausing') && !(await isBeingMoved(client))
}

/**
 * Ends a move before its switch if it still is to be ended while nobody can change that: since it was looked at, the store may have been switched. The pause and
 * the job end at once; what the move has added to the tables goes when nobody holds them up, and otherwise rejects, to be asked again.
 */
export async function endMove(client: MoveClient, failure: string, nowMs: number, isToEnd: () => Promise<boolean>): Promise<void> {
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if (!(await isToEnd())) return
    await leaveMark(client)
    await failMoves(client, failure, nowMs)
  })
  // One table at a time, so as not to hold one while waiting for another. The next move has functions of the same names.
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

/** Puts a moved store back into use, if it is one. */
export async function undoMove(client: MoveClient, failure: string, nowMs: number): Promise<void> {
  await locking(client, BESIDE_WRITERS, async () => {
    await lockMark(client)
    if ((await readMark(client))?.state !== 'moved') return
    await dropMoveParts(client)
    await dropMark(client)
    await failMoves(client, failure, nowMs)
  })
}

/** A new store is complete and in use: from now on it opens as any other. */
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
