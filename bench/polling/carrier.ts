import { parseAllAnswer } from '../../src/core/domain/history/pull-response.ts'
import type { CarrierAnswer } from '../../src/core/domain/polling/carrier-answer.ts'
import type { Carrier } from '../../src/core/flow/ports.ts'
import type { Lifecycle } from './lifecycles.ts'
import { isWithin, type Span } from './losses.ts'

export interface SimulatedCarrier {
  readonly port: Pick<Carrier, 'fetchAll'>
  calls(): number
}

/** Answers with the scans that have happened by the simulated clock. */
export function createSimulatedCarrier(
  lifecycles: readonly Lifecycle[],
  now: () => number,
  outage: Span | null,
  onAnswer: (parcel: number, entries: number) => void,
): SimulatedCarrier {
  const parcels = new Map(lifecycles.map(({ id }, parcel) => [id, parcel]))
  let calls = 0
  return {
    calls: () => calls,
    port: {
      async fetchAll({ identifier, language }): Promise<CarrierAnswer> {
        calls++
        const parcel = parcels.get(identifier)
        if (parcel === undefined) return { kind: 'not_found' }
        if (isWithin(outage, now())) return { kind: 'unavailable', reason: 'network' }
        const scans = (lifecycles[parcel]?.scans ?? []).filter(({ atMs }) => atMs <= now())
        const context = { asked: identifier, language, contentLanguage: language, askedAtMs: now() }
        const reading = parseAllAnswer(answerBody(identifier, scans), context)
        if (!reading.ok) throw new Error(`the simulated carrier's answer cannot be read: ${reading.reason}`)
        onAnswer(parcel, scans.length)
        return { kind: 'found', observation: reading.observation }
      },
    },
  }
}

function answerBody(id: string, scans: Lifecycle['scans']): Buffer {
  const statuses = scans.toReversed().map(({ atMs, status, detailedStatus }) => ({
    status,
    detailedStatus,
    eventTimestamp: new Date(atMs).toISOString(),
    location: 'Lund',
    detailedStatusDescription: detailedStatus,
    consumerDescription: null,
    displayToConsumer: false,
  }))
  return Buffer.from(JSON.stringify({ statuses, trackingIds: [id], distributionType: 'Mailbox' }))
}

/** A webhook body for one scan. */
export function pushBody(id: string, { atMs, status, detailedStatus }: Lifecycle['scans'][number]): Buffer {
  const eventTime = new Date(atMs).toISOString()
  return Buffer.from(JSON.stringify({ status, detailedStatus, eventTime, location: 'Lund', trackingIds: [id], displayToConsumer: false }))
}
