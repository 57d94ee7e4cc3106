import type { RequestPlan } from './requests.ts'
import type { RunOptions, RunResult } from './run.ts'

/** What the generator is told. Both ends are compiled together, so a message is trusted to be one of these. */
export type GeneratorCommand =
  | { readonly kind: 'prepare'; readonly plan: RequestPlan }
  | { readonly kind: 'run'; readonly options: RunOptions }

/** And what it says to each. */
export type GeneratorReply =
  | { readonly kind: 'prepared' }
  | { readonly kind: 'ran'; readonly result: RunResult }
  | { readonly kind: 'failed'; readonly message: string }
