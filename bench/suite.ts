import type { Settings } from './settings.ts'

/** A figure with its goals. */
export interface Figure {
  readonly name: string
  /** The median over the rounds. */
  readonly value: number
  readonly rounds: readonly number[]
  readonly unit: 'x' | 's' | 'MB' | 'ms' | '/s'
  readonly better: 'higher' | 'lower'
  /** The required value; absent: the figure is only reported. */
  readonly must?: number
  readonly aim?: number
}

/** A line of the second table, which helps to explain a figure. */
export interface Observation {
  readonly name: string
  readonly facts: Readonly<Record<string, number | string>>
}

export interface SuiteReport {
  readonly figures: readonly Figure[]
  readonly observations: readonly Observation[]
}

/** The arguments of a suite. */
export interface Bench {
  readonly settings: Settings
  /** The relay's compiled `main.js`. */
  readonly relayEntry: string
  /** A folder for its files, deleted afterwards. */
  readonly folder: string
  say(text: string): void
}

export type Suite = (bench: Bench) => Promise<SuiteReport>
