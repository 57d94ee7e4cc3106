import type { Lifecycle } from './lifecycles.ts'

export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** When each scan's push arrives, by parcel and scan; `null`: it is lost. */
export type Pushes = readonly (readonly (number | null)[])[]

/** The longest delay of a push. */
const DELAY_MAX_MS = 20_000

/** Decides from a seed which pushes are lost, so that all pollers lose the same ones. */
export function drawPushes(lifecycles: readonly Lifecycle[], loss: number, silence: Span | null, seed: number): Pushes {
  const random = createRandom(seed)
  return lifecycles.map(({ scans }) =>
    scans.map(({ atMs }) => {
      const lost = random() < loss
      const arrivalMs = atMs + 1000 + Math.floor(random() * DELAY_MAX_MS)
      return lost || isWithin(silence, atMs) ? null : arrivalMs
    }),
  )
}

export function isWithin(span: Span | null, atMs: number): boolean {
  return span !== null && atMs >= span.fromMs && atMs < span.toMs
}

/** A linear congruential generator by Numerical Recipes' constants: coarse, but sufficient to choose lost pushes. Returns numbers in [0, 1). */
function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 4_294_967_296
  }
}
