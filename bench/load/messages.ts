import type { RequestPlan } from './requests.ts'
import type { RunOptions, RunResult } from './run.ts'

/** Commands to the generator. Trusted, because both ends are compiled together. */
export type GeneratorCommand =
  | { readonly kind: 'prepare'; readonly plan: RequestPlan }
  | { readonly kind: 'run'; readonly options: RunOptions }

/** The reply to each command. */
export type GeneratorReply =
  | { readonly kind: 'prepared' }
  | { readonly kind: 'ran'; readonly result: RunResult }
  | { readonly kind: 'failed'; readonly message: string }
