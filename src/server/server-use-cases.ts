import type { Replica } from '../core/domain/admin/replica.ts'
import type { Replicas } from './replicas/replicas.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly listReplicas: () => Promise<readonly Replica[]>
  }
}

declare module '../core/wiring/opened-storage.ts' {
  interface SharedStore {
    readonly replicas: Pick<Replicas, 'begin'>
    /** If a replica was killed while it moved the store, removes what is left of the move. */
    readonly clearMoves: () => Promise<void>
  }
}
