import type { DispatchRound } from '../../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { waitOf } from '../../../domain/delivery/pace.ts'

export type AttemptWatch = ReturnType<typeof createAttemptWatch>
export type AttemptLook = ReturnType<AttemptWatch['look']>

const SECOND_MS = 1000

/**
 * Measures, by a monotonic clock, how long endpoints have been failing and how many attempts they get. Time when the relay is down does not count.
 */
export function createAttemptWatch(monotonic: () => number) {
  const failedMs = new Map<string, number>()
  const counts = createSecondCounts()
  /** The ids of the endpoints whose pace this process has learnt. */
  const learnt = new Set<string>()

  return {
    look({ settled, held }: Pick<DispatchRound, 'settled' | 'held'>) {
      const nowMs = monotonic()
      const seen = new Set<string>()
      for (const { endpointId } of settled) counts.add(endpointId, nowMs)
      for (const id of learnt) if (held?.includes(id) === false) learnt.delete(id)
      return {
        /**
         * Notes that an endpoint has failed. Returns the milliseconds since its last failure; 0: it did not fail before, or was already
         * noted in this round.
         */
        failedAfterMs(endpointId: string): number {
          if (seen.has(endpointId)) return 0
          seen.add(endpointId)
          return nowMs - (failedMs.get(endpointId) ?? nowMs)
        },
        /** Must be called when the round was committed, so that later rounds know its failures and paces. */
        keep(states: readonly EndpointState[]): void {
          for (const endpointId of seen) failedMs.set(endpointId, nowMs)
          for (const { endpoint, health } of states) if (seen.has(endpoint.id) && health.pace !== null) learnt.add(endpoint.id)
        },
        sentPerSecond: (endpointId: string) => counts.of(endpointId, nowMs),
      }
    },
    /** Drops each pace that another process has learnt, once its wait is over: whoever takes an endpoint over learns anew (DOMAIN 7.4). */
    withOwnPaces: (states: readonly EndpointState[], nowMs: number): readonly EndpointState[] =>
      states.map((state) =>
        state.health.pace === null || learnt.has(state.endpoint.id) || waitOf(state.health.pace, nowMs) !== null
          ? state
          : { ...state, health: { ...state.health, pace: null } },
      ),
  }
}

/** Counts by key over about the last second. */
function createSecondCounts() {
  const counts = new Map<string, { readonly second: number; readonly before: number; count: number }>()

  function at(key: string, nowMs: number) {
    const second = Math.floor(nowMs / SECOND_MS)
    const known = counts.get(key)
    if (known?.second === second) return known
    const next = { second, before: known?.second === second - 1 ? known.count : 0, count: 0 }
    counts.set(key, next)
    return next
  }

  return {
    add(key: string, nowMs: number): void {
      at(key, nowMs).count += 1
    },
    of(key: string, nowMs: number): number {
      const { before, count } = at(key, nowMs)
      return count + before * (1 - (nowMs % SECOND_MS) / SECOND_MS)
    },
  }
}
