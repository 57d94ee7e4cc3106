import type { EnableOperator, TestOperator } from './events/operator-endpoint.ts'
import type { OperationQueries } from './overview/operation-queries.ts'
import type { Overview } from './overview/overview.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly enableOperator: EnableOperator['enable']
    readonly operations: OperationQueries
    readonly overview: Overview
    readonly testOperator: TestOperator
  }
}
