import { MOVE_WAS_STOPPED } from '../../../upkeep/moving/store-move.rules.ts'
import type { StoreMoves } from '../../../upkeep/moving/store-moves.rows.ts'
import { nameDatabase } from '../postgres-pool.ts'
import type { ServerWatch } from '../server-watch.ts'
import { withMoveClient } from './postgres-move-client.ts'
import { countReplicas, endMove, readMark, releaseMark, undoMove, wasLeft } from './postgres-move-mark.ts'
import { openPostgresMoveSource } from './postgres-move-source.ts'
import { openPostgresMoveTarget } from './postgres-move-target.ts'

export const postgresMoves = {
  nameOf: nameDatabase,
  openSource: openPostgresMoveSource,
  openTarget: openPostgresMoveTarget,
  readMark: (address) => withMoveClient(address, readMark),
  /** `watch`: the watch over the connections of the relay that uses the store. */
  clear: (address: string, nowMs: number, watch?: ServerWatch) =>
    withMoveClient(
      address,
      async (client) => {
        if (await wasLeft(client)) await endMove(client, MOVE_WAS_STOPPED, nowMs, () => wasLeft(client))
      },
      watch,
    ),
  release: (address, moveId) => withMoveClient(address, (client) => releaseMark(client, moveId)),
  holdUnused: (address) =>
    withMoveClient(address, async (client) => {
      const replicas = await countReplicas(client)
      return {
        usedBy: replicas === 0 ? null : `replicas: ${replicas}; one that was killed counts until its lease runs out`,
        release: () => undefined,
      }
    }),
  undo: (address, nowMs) =>
    withMoveClient(address, async (client) => {
      const mark = await readMark(client)
      if (mark?.state !== 'moved') return null
      await undoMove(client, MOVE_WAS_STOPPED, { name: nameDatabase(address), nowMs })
      return mark
    }),
} satisfies StoreMoves
