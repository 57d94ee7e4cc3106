import type { EnableOperator, Operator, TestOperator } from './events/operator-endpoint.ts'
import type { Unstored } from './events/unstored.ts'
import type { OperationQueries } from './overview/operation-queries.ts'
import type { Overview } from './overview/overview.ts'
import type { Tallies } from './tallies/tallies.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly enableOperator: EnableOperator['enable']
    readonly operations: OperationQueries
    readonly overview: Overview
    readonly testOperator: TestOperator
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly operator: Operator
    readonly unstored: Unstored
    readonly tallies: Tallies
  }
}
