import type { Sentence } from '../../words.ts'

/** What is wrong, and what an operator can do. */
export interface Explanation {
  /** One line without a full stop. */
  readonly title: string
  /** When the problem began, epoch milliseconds; null: not known. */
  readonly sinceMs: number | null
  readonly evidence: readonly Sentence[]
  readonly todo: readonly Sentence[]
}
