import { noFilters } from '../../domain/delivery/endpoint.ts'
import { newHealth, resetHealth } from '../../domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { encodeOperatorEvent, OPERATOR_NAME, type OperatorEvent } from '../../domain/delivery/operator-event.ts'
import type { CarrierState } from '../../domain/polling/carrier-answer.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteTx } from '../write-store.ts'

/** Operator events belong to no parcel and have an order of their own. */
const NO_PARCEL = 0
const SCHEDULE_MS = [5, 30, 120, 600, 1800, 3600].map((seconds) => seconds * 1000)

/**
 * Queues an operator event as a delivery to the endpoint that the setting `operator` creates, so that it survives a restart and is retried.
 * Does nothing if there is no such endpoint.
 */
export async function queueOperatorEvent(tx: WriteTx, event: OperatorEvent, nowMs: number): Promise<void> {
  const operator = (await tx.listEndpoints()).find(({ origin }) => origin === 'operator')
  if (operator === undefined) return
  await tx.queueComposed({ endpointId: operator.endpoint.id, parcelId: NO_PARCEL, body: encodeOperatorEvent(event, nowMs), nowMs })
}

/** Creates or updates the operator's endpoint as the config says. It gets no events of parcels. */
export async function saveOperator(tx: WriteTx, url: string, nowMs: number): Promise<void> {
  const known = (await tx.listEndpoints()).find(({ origin }) => origin === 'operator')
  const state: EndpointState = {
    endpoint: {
      id: known?.endpoint.id ?? '',
      name: OPERATOR_NAME,
      url,
      enabled: true,
      signature: 'carrier',
      filters: { ...noFilters, status: [] },
      backfill: false,
      ratePerSecond: null,
      concurrency: null,
      scheduleMs: SCHEDULE_MS,
      refusals: 'wait',
    },
    origin: 'operator',
    disabled: null,
    health:
      known === undefined
        ? newHealth
        : known.disabled === null || known.disabled === 'unnamed'
          ? known.health
          : resetHealth(known.health, nowMs),
    keys: null,
    queuedTo: null,
    backfilled: null,
  }
  await tx.saveEndpoint(state)
}

/**
 * Creates a check that queues one operator event when the carrier starts to refuse the relay's credentials. To be called whenever that may
 * have happened.
 */
export function createCredentialAlert(ports: {
  readonly write: Pick<WriteSide, 'queueOperatorEvent'>
  readonly credentials: () => CarrierState['credentials']
  readonly now: () => number
  readonly wake: () => void
}): () => Promise<void> {
  let isQueued = false
  return async () => {
    const isRefused = ports.credentials() === 'refused'
    if (isRefused === isQueued) return
    if (isRefused) {
      await ports.write.queueOperatorEvent({ event: 'credentials_refused' }, ports.now())
      ports.wake()
    }
    isQueued = isRefused
  }
}
