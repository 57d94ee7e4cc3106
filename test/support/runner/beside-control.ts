import { expect } from 'vitest'

/** What a machine may add to any single measure, whatever is measured. */
const SLACK_MS = 50
/** An odd number, so that one turn is the middle one. */
const TURNS = 3
const TRIES_MAX = 4

export interface BesideControl {
  /** The load without the fault; resolves with what is measured of it, in milliseconds. */
  readonly control: () => Promise<number>
  /** The same load beside the fault. */
  readonly fault: () => Promise<number>
  /** How many times the control's a measure beside the fault may be. */
  readonly ratio: number
}

/**
 * Holds what a load takes beside a fault to what it takes without, on this machine at this time: both in turns, the median of three each. A miss is measured
 * again, since anything else may happen on a machine meanwhile, whoever sends a flood included: a fault is slow each time. Resolves with what it saw, as a sentence.
 */
export async function expectBesideControl({ control, fault, ratio }: BesideControl): Promise<string> {
  const seen: string[] = []
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const [controlMs, faultMs] = await medians(control, fault)
    const limitMs = ratio * controlMs + SLACK_MS
    seen.push(`${Math.round(faultMs)} ms beside the fault, ${Math.round(controlMs)} ms without it (limit ${Math.round(limitMs)} ms)`)
    if (faultMs <= limitMs) return seen.join('; ')
  }
  return expect.fail(`it was too slow each of ${TRIES_MAX} times: ${seen.join('; ')}`)
}

async function medians(control: () => Promise<number>, fault: () => Promise<number>): Promise<readonly [number, number]> {
  const [controls, faults]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < TURNS; turn++) {
    controls.push(await control())
    faults.push(await fault())
  }
  return [partOf(controls, 0.5), partOf(faults, 0.5)]
}

/** The measure that this part of all is not above: 0.5 is the median, 0.99 the 99th percentile. */
export function partOf(measures: readonly number[], part: number): number {
  if (measures.length === 0) return expect.fail('nothing was measured')
  return measures.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(measures.length * part) - 1)] ?? Number.NaN
}
