import type { Part } from '../relay.ts'

/** Remembers the pushes that could not be stored, and notices when they come again. */
export interface Comebacks {
  /** Call it when a push with this signature could not be stored. */
  refused(signature: string): void
  /** Call it when a push with this signature was stored. */
  taken(signature: string): void
}

/** Enough for hours of refused pushes. A signature takes some hundred bytes. */
const KEPT_MAX = 20_000
/** A refused push that comes again later than this is not noticed. */
const KEPT_MS = 24 * 3_600_000

export interface ComebackPorts extends Part<'clock', 'monotonic'> {
  /** Called when a push is refused for the first time, and when a refused push has come again and was stored. */
  readonly tell: (what: 'first' | 'again') => void
}

/** Recognizes a push by its signature, because the same bytes always have the same signature. */
export function createComebacks({ tell, clock }: ComebackPorts): Comebacks {
  /** The time of the first refusal by signature, the oldest first. */
  const waiting = new Map<string, number>()

  function forgetOld(): void {
    for (const [signature, atMs] of waiting) {
      if (waiting.size < KEPT_MAX && clock.monotonic() - atMs < KEPT_MS) return
      waiting.delete(signature)
    }
  }

  return {
    refused(signature) {
      if (waiting.has(signature)) return
      forgetOld()
      waiting.set(signature, clock.monotonic())
      tell('first')
    },
    taken(signature) {
      if (waiting.size === 0) return
      const atMs = waiting.get(signature)
      if (atMs !== undefined && waiting.delete(signature) && clock.monotonic() - atMs < KEPT_MS) tell('again')
    },
  }
}
