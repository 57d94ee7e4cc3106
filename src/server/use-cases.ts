import type { Replica } from '../core/domain/admin/replica.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly listReplicas: () => Promise<readonly Replica[]>
  }
}
