import type { ServerStores } from '../../upkeep/server-stores.ts'
import { markRestored } from './backups/mark-restored.ts'
import { inspectPostgres } from './inspect-server.ts'
import { postgresMoves } from './moving/postgres-moves.ts'
import { postgres } from './postgres-engine.ts'
import { isServerAway } from './postgres-failure.ts'
import { nameDatabase } from './postgres-pool.ts'

export const SERVER_STORES: ServerStores = {
  engine: postgres,
  moves: postgresMoves,
  nameOf: nameDatabase,
  inspect: inspectPostgres,
  isAway: isServerAway,
  markRestored,
}
