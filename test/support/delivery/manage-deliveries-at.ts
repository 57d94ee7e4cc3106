import { createManageDeliveries, type ManageDeliveries } from '../../../src/core/flow/delivery/manage-deliveries.ts'

type Ports = Parameters<typeof createManageDeliveries>[0]

/** Creates the commands for deliveries of a store. Unless `ports` says otherwise, they wake no dispatcher. */
export function manageDeliveriesAt(ports: Pick<Ports, 'write' | 'reads' | 'clock'> & Partial<Ports>, relayId = 'relay'): ManageDeliveries {
  return createManageDeliveries(
    {
      review: () => {},
      reviewed: async () => {},
      inTurn: (work) => work(),
      stopping: new AbortController().signal,
      ...ports,
    },
    { relayId, userAgent: 'parcel-relay/test' },
  )
}
