import type { Carrier, Clock, WriteSide } from './ports.ts'

export interface UpstreamPorts {
  readonly carrier: Pick<Carrier, 'state'>
  readonly write: Pick<WriteSide, 'pushChannel'>
  readonly clock: Clock
}

/** What operators can see of the carrier (CONTRACT, `/relay/upstream`). */
export interface Upstream {
  read(): Promise<object>
  /** Counts a push that should have come and did not. */
  countMissed(): void
}

export function createUpstream({ carrier, write, clock }: UpstreamPorts): Upstream {
  const startedAtMs = clock.now()
  let missed = 0
  let missedAtMs: number | null = null
  return {
    countMissed() {
      missed += 1
      missedAtMs = clock.now()
    },
    async read() {
      const { credentials, budget, breaker, lastAnswerAtMs, lastFailure } = carrier.state()
      const { health, loss, lastPushAtMs, missedSincePush } = await write.pushChannel()
      const { restMs, ...state } = breaker
      const { callsToday, callsPerDay, waiting, inFlight } = budget
      return {
        credentials,
        budget: { callsToday, callsPerDay, callsLeft: Math.max(0, callsPerDay - callsToday), waiting, inFlight },
        breaker: { ...state, restSeconds: Math.ceil(restMs / 1000) },
        pushes: {
          health,
          silent: health === 'silent',
          lossEstimate: Math.round(loss * 1000) / 1000,
          lastNewAt: presentTime(lastPushAtMs),
          missedSinceLastNew: missedSincePush,
          missed: { count: missed, since: presentTime(startedAtMs), lastFoundAt: presentTime(missedAtMs) },
        },
        lastAnswerAt: presentTime(lastAnswerAtMs),
        lastFailure: lastFailure === null ? null : { reason: lastFailure.reason, at: presentTime(lastFailure.atMs) },
      }
    },
  }
}

function presentTime(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}
