import type { RecordRules } from '../../core/domain/history/recording.ts'
import { audit } from '../../core/flow/audit.tx.ts'
import { createWatchIn, saveOrders, type WatchPorts } from '../../core/flow/polling/watch-parcels.tx.ts'
import type { WriteSide } from '../../core/flow/write-side.ts'
import { removeLostContexts } from '../../core/store/history/order-contexts.ts'

/** Creates the verbs by which an app says to which order a parcel belongs (DOMAIN 8), and the janitor removes what is lost. */
export function createSaveOrder(ports: WatchPorts, options: RecordRules): Pick<WriteSide, 'saveOrder' | 'dropLostOrders'> {
  const { watchAll } = createWatchIn(ports, options)
  return {
    dropLostOrders: (request) => ports.store.transaction((tx) => removeLostContexts(tx, request), { ofRole: 'janitor' }),
    saveOrder: ({ identifier, context, nowMs, ...order }) =>
      ports.store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        // A known parcel is polled as before: what is said of its order is no reason to ask the carrier.
        const result =
          known === undefined
            ? (await watchAll(tx, [identifier], nowMs))[0]
            : { parcelId: (await tx.loadParcel(known.parcelId)).parcelId, created: false }
        if (result === undefined || result === null) return null
        const changed = await saveOrders(tx, [{ parcelId: result.parcelId, part: context }])
        audit(tx, order, { changed, created: result.created })
        return { ...result, changed }
      }),
  }
}
