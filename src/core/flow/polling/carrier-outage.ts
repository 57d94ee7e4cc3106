import type { ToldEvent } from '../../domain/delivery/operator-event.ts'
import { CARRIER_TROUBLE, type CarrierOutage, isUnavailableReason, type LastFailure } from '../../domain/polling/carrier-answer.ts'
import { isTlsFault } from '../../domain/system-reason.ts'
import type { Reads } from '../relay.ts'

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
