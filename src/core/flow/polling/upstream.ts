import type { ToldEvent } from '../../domain/delivery/operator-event.ts'
import {
  CARRIER_TROUBLE,
  type CarrierOutage,
  failureCode,
  isUnavailableReason,
  type LastFailure,
} from '../../domain/polling/carrier-answer.ts'
import { isTlsFault } from '../../domain/system-reason.ts'
import type { Carrier } from '../ports.ts'
import type { Reads, Writes } from '../relay-part.ts'

interface UpstreamPorts extends Writes<'pushChannel'> {
  readonly carrier: Pick<Carrier, 'state'>
  readonly version: string
  /** Returns the senders of pushes whose signature did not match, the most recent first. */
  readonly refusedSenders: () => Promise<
    readonly { readonly address: string; readonly count: number; readonly firstAtMs: number; readonly lastAtMs: number }[]
  >
}

/** The state of the carrier as operators see it (CONTRACT, `/relay/upstream`). */
export type Upstream = ReturnType<typeof createUpstream>

export function createUpstream({ carrier, write, version, refusedSenders }: UpstreamPorts) {
  return {
    async read() {
      const { credentials, refusal, budget, breaker, lastAnswerAtMs, lastFailure } = carrier.state()
      const { health, loss, lastPushAtMs, missedSincePush, silence, probation, missed } = await write.pushChannel()
      const { state, failures, restMs, sinceMs = null } = breaker
      const { callsToday, callsPerDay, waiting, inFlight } = budget
      return {
        version,
        credentials,
        refusal:
          refusal === null ? null : { at: presentTime(refusal.atMs), by: refusal.by, retrySeconds: Math.ceil(refusal.retryMs / 1000) },
        budget: { callsToday, callsPerDay, callsLeft: Math.max(0, callsPerDay - callsToday), waiting, inFlight },
        breaker: { state, failures, restSeconds: Math.ceil(restMs / 1000), since: presentTime(sinceMs) },
        pushes: {
          health,
          silent: health === 'silent',
          lossEstimate: Math.round(loss * 1000) / 1000,
          lastNewAt: presentTime(lastPushAtMs),
          missedSinceLastNew: missedSincePush,
          silentSince: presentTime(silence?.sinceMs ?? null),
          silence:
            silence === null
              ? null
              : { noticedAt: presentTime(silence.noticedAtMs), found: silence.found, lossBefore: Math.round(silence.loss * 1000) / 1000 },
          probation: probation === null ? null : { since: presentTime(probation.sinceMs), trustedFrom: presentTime(probation.untilMs) },
          missed: { count: missed.count, since: presentTime(missed.sinceMs), lastFoundAt: presentTime(missed.lastFoundAtMs) },
        },
        refusedSignatures: (await refusedSenders()).map(({ address, count, firstAtMs, lastAtMs }) => ({
          address,
          count,
          firstAt: presentTime(firstAtMs),
          lastAt: presentTime(lastAtMs),
        })),
        lastAnswerAt: presentTime(lastAnswerAtMs),
        lastFailure:
          lastFailure === null
            ? null
            : { reason: failureCode(lastFailure), status: lastFailure.status ?? null, at: presentTime(lastFailure.atMs) },
      }
    },
  }
}

function presentTime(atMs: number): string
function presentTime(atMs: number | null): string | null
function presentTime(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}

/** Returns the outage of the carrier that operators were told of and that has not ended, whichever run or replica found it; null: there is none. */
export async function findCarrierOutage({ reads }: Reads<'troubleSinceMs' | 'listOperatorEvents'>): Promise<CarrierOutage | null> {
  const sinceMs = await reads.troubleSinceMs(CARRIER_TROUBLE)
  if (sinceMs === null) return null
  const [told] = await reads.listOperatorEvents({ event: 'carrier_failing', fromMs: null, toMs: null, before: null, limit: 1 })
  return { sinceMs, failure: told === undefined || told.detail.since !== new Date(sinceMs).toISOString() ? null : failureIn(told) }
}

function failureIn({ atMs, detail: { reason, status } }: ToldEvent): LastFailure | null {
  if (typeof reason !== 'string') return null
  const of = { atMs, ...(typeof status === 'number' ? { status } : {}) }
  if (isTlsFault(reason)) return { reason: 'network', tls: reason, ...of }
  return isUnavailableReason(reason) ? { reason, ...of } : null
}
