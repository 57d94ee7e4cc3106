import type { Settings } from './settings.ts'

/** One of the figures that are wanted. */
export interface Figure {
  readonly name: string
  /** The median over the rounds. */
  readonly value: number
  readonly rounds: readonly number[]
  readonly unit: 'x' | 's' | 'MB' | 'ms' | '/s'
  readonly better: 'higher' | 'lower'
  /** Absent: reported, not gated. */
  readonly must?: number
  readonly aim?: number
}

/** What was seen on the way, for whoever wants to know why a figure is what it is: a line of the second table. */
export interface Observation {
  readonly name: string
  readonly facts: Readonly<Record<string, number | string>>
}

export interface SuiteReport {
  readonly figures: readonly Figure[]
  readonly observations: readonly Observation[]
}

/** What a suite is given. */
export interface Bench {
  readonly settings: Settings
  /** The relay's compiled `main.js`. */
  readonly relayEntry: string
  /** A folder for whatever it writes, removed afterwards. */
  readonly folder: string
  say(text: string): void
}

export type Suite = (bench: Bench) => Promise<SuiteReport>
