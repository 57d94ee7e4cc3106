import { KEPT_FOREVER } from '../../../src/domain/admin/retention.ts'
import { createManageDeliveries, type ManageDeliveries } from '../../../src/flow/delivery/manage-deliveries.ts'
import { createResends } from '../../../src/flow/delivery/resends.ts'

type Ports = Parameters<typeof createManageDeliveries>[0]

/** Creates the commands for deliveries of a store. Unless `ports` says otherwise, they wake no dispatcher, and everything is kept forever. */
export function manageDeliveriesAt(ports: Pick<Ports, 'write' | 'reads' | 'clock'> & Partial<Ports>, relayId = 'relay'): ManageDeliveries {
  return createManageDeliveries(
    {
      review: () => {},
      reviewed: async () => {},
      work: () => {},
      inTurn: (work) => work(),
      retention: () => KEPT_FOREVER,
      yieldToIo: async () => {},
      stopping: new AbortController().signal,
      resends: createResends(),
      ...ports,
    },
    { relayId, userAgent: 'parcel-relay/test' },
  )
}
