import { expect } from 'vitest'

/** Noise that a machine may add to any single measure. */
const SLACK_MS = 50
/** An odd number, so that the median is the measure of one turn. */
const TURNS = 3
const TRIES_MAX = 4

export interface BesideControl {
  /** Runs the load without the fault. Resolves with its measure, in milliseconds. */
  readonly control: () => Promise<number>
  readonly fault: () => Promise<number>
  /** How many times as long as the control the load may take beside the fault. */
  readonly ratio: number
}

/**
 * Compares the time of a load beside a fault with its time without the fault, by the medians of three runs each. If the limit is
 * exceeded, measures again, because other work on the machine may be the cause. Resolves with a sentence that gives the measures.
 */
export async function expectBesideControl({ control, fault, ratio }: BesideControl): Promise<string> {
  const seen: string[] = []
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const [controlMs, faultMs] = await medians(control, fault)
    const limitMs = ratio * controlMs + SLACK_MS
    seen.push(`${Math.round(faultMs)} ms beside the fault, ${Math.round(controlMs)} ms without it (limit ${Math.round(limitMs)} ms)`)
    if (faultMs <= limitMs) return seen.join('; ')
  }
  return expect.fail(`it was too slow in each of ${TRIES_MAX} tries: ${seen.join('; ')}`)
}

async function medians(control: () => Promise<number>, fault: () => Promise<number>): Promise<readonly [number, number]> {
  const [controls, faults]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < TURNS; turn++) {
    controls.push(await control())
    faults.push(await fault())
  }
  return [partOf(controls, 0.5), partOf(faults, 0.5)]
}

/** Returns a quantile: for `part`, 0.5 gives the median and 0.99 the 99th percentile. */
export function partOf(measures: readonly number[], part: number): number {
  if (measures.length === 0) return expect.fail('nothing was measured')
  return measures.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(measures.length * part) - 1)] ?? Number.NaN
}
