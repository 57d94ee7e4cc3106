import { MOVE_WAS_KILLED } from '../../moving/move-mark.ts'
import type { StoreMoves } from '../../moving/store-moves.ts'
import { nameDatabase } from '../postgres-pool.ts'
import type { ServerWatch } from '../server-watch.ts'
import { type MoveClient, withMoveClient } from './postgres-move-client.ts'
import { countReplicas, dropMark, dropMoveParts, failMoves, isBeingMoved, lockMark, readMark } from './postgres-move-mark.ts'
import { locking, openPostgresMoveSource } from './postgres-move-source.ts'
import { openPostgresMoveTarget } from './postgres-move-target.ts'

/** Moves from and to databases. */
export const postgresMoves = {
  nameOf: nameDatabase,
  openSource: openPostgresMoveSource,
  openTarget: openPostgresMoveTarget,
  readMark: (place) => withMoveClient(place, readMark),
  /** `watch`: that of the relay that uses the store. */
  clear: (place: string, nowMs: number, watch?: ServerWatch) =>
    withMoveClient(
      place,
      async (client) => {
        if (await wasLeft(client)) await endMove(client, nowMs, wasLeft)
      },
      watch,
    ),
  release: (place, moveId) =>
    withMoveClient(place, async (client) => {
      const mark = await readMark(client)
      if (mark?.state === 'receiving' && mark.moveId === moveId) await dropMark(client)
    }),
  holdUnused: (place) =>
    withMoveClient(place, async (client) => {
      const replicas = await countReplicas(client)
      return {
        usedBy: replicas === 0 ? null : `replicas: ${replicas}; one that was killed counts until its lease runs out`,
        release: () => undefined,
      }
    }),
  undo: (place, nowMs) =>
    withMoveClient(place, async (client) => {
      const mark = await readMark(client)
      if (mark?.state !== 'moved') return null
      await endMove(client, nowMs, async () => (await readMark(client))?.state === 'moved')
      return mark
    }),
} satisfies StoreMoves

/** Whether a move was begun that nobody goes on with. */
async function wasLeft(client: MoveClient): Promise<boolean> {
  const state = (await readMark(client))?.state
  return (state === 'copying' || state === 'pausing') && !(await isBeingMoved(client))
}

/** Ends a move if it still is to be ended while nobody can change that: since it was looked at, the store may have been switched. */
async function endMove(client: MoveClient, nowMs: number, isToEnd: (client: MoveClient) => Promise<boolean>): Promise<void> {
  await locking(() =>
    client.transaction({}, async () => {
      await lockMark(client)
      if (!(await isToEnd(client))) return
      await dropMoveParts(client)
      await dropMark(client)
      await failMoves(client, MOVE_WAS_KILLED, nowMs)
    }),
  )
}
