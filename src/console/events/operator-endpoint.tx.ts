import { newHealth, resetHealth } from '../../core/domain/delivery/endpoint-health.ts'
import { defaultSettings, type EndpointState, noFilters } from '../../core/domain/delivery/endpoint-state.ts'
import { OPERATOR_NAME } from '../../core/domain/delivery/operator-event.ts'
import type { WriteTx } from '../../core/store/write-store.ts'

const SCHEDULE_MS = [5, 30, 120, 600, 1800, 3600].map((seconds) => seconds * 1000)

/** Creates the endpoint for operator events or sets its URL, as configured. It gets no events about parcels. */
export async function saveOperator(tx: WriteTx, url: string, nowMs: number): Promise<void> {
  const known = (await tx.listEndpoints()).find(({ origin }) => origin === 'operator')
  const state: EndpointState = {
    endpoint: {
      ...defaultSettings,
      id: known?.endpoint.id ?? '',
      name: OPERATOR_NAME,
      url,
      filters: { ...noFilters, status: [] },
      scheduleMs: SCHEDULE_MS,
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
    firstSequence: 0,
    beganAtMs: known?.beganAtMs ?? nowMs,
    backfilled: null,
  }
  await tx.saveEndpoint(state)
}
