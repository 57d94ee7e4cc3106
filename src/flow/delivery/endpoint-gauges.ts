import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'

/** The gauges of one endpoint. */
export interface EndpointGauge {
  readonly name: string
  readonly waiting: number
  /** 0: nothing waits. */
  readonly oldestWaitingSeconds: number
  readonly dead: number
  readonly failing: boolean
  readonly disabled: boolean
}

/** Reads the gauges of the first `max` endpoints. */
export async function readEndpointGauges(
  { reads, clock }: { readonly reads: Pick<ReadSide, 'listEndpoints' | 'countBacklog'>; readonly clock: Pick<Clock, 'now'> },
  max: number,
): Promise<readonly EndpointGauge[]> {
  const gauges: EndpointGauge[] = []
  for (const { endpoint, disabled, health } of (await reads.listEndpoints()).slice(0, max)) {
    const { waiting, oldestAtMs, dead } = await reads.countBacklog(endpoint.id)
    gauges.push({
      name: endpoint.name,
      waiting,
      oldestWaitingSeconds: oldestAtMs === null ? 0 : Math.max(0, (clock.now() - oldestAtMs) / 1000),
      dead,
      failing: disabled === null && health.probing !== null,
      disabled: disabled !== null,
    })
  }
  return gauges
}
