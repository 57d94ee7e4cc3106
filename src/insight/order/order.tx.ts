import type { Audited } from '../../core/domain/admin/operator-action.ts'
import { changeOf, NO_CONTEXT, type OrderContext } from '../../core/domain/history/order-context.ts'
import type { RecordRules } from '../../core/domain/history/recording.ts'
import { audit } from '../../core/flow/audit.tx.ts'
import { createWatchIn, saveOrders, type WatchPorts } from '../../core/flow/polling/watch-parcels.tx.ts'
import { loadContexts, removeLostContexts } from '../../core/store/history/order-contexts.ts'

interface SaveOrder extends Audited {
  readonly identifier: string
  readonly context: OrderContext
  readonly shown?: OrderContext | null
  readonly nowMs: number
}

/** Creates the verbs by which an app says to which order a parcel belongs (DOMAIN 8), and the janitor removes what is lost. */
export function createSaveOrder(ports: WatchPorts, options: RecordRules) {
  const { watchAll } = createWatchIn(ports, options)
  return {
    /** Removes orders whose parcels are gone. Looks at some, and returns the parcel after which to look on; null: that was all. */
    dropLostOrders: (request: { readonly after: number; readonly limit: number }) =>
      ports.store.transaction((tx) => removeLostContexts(tx, request), { ofRole: 'janitor' }),
    /**
     * Replaces what is said of the order of a parcel, and watches an identifier without a parcel. `changed`: something else was said before. Null:
     * the identifier belongs to an erased parcel. `shown`: what it replaces, as somebody saw it: then it replaces only what they changed.
     * `isStale`: others have changed the same since, so nothing was saved.
     */
    saveOrder: ({ identifier, context, shown = null, nowMs, ...order }: SaveOrder) =>
      ports.store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        // A known parcel is polled as before: what is said of its order is no reason to ask the carrier.
        const result =
          known === undefined
            ? (await watchAll(tx, [identifier], nowMs))[0]
            : { parcelId: (await tx.loadParcel(known.parcelId)).parcelId, created: false }
        if (result === undefined || result === null) return null
        const { parcelId } = result
        const now = shown === null || result.created ? null : ((await loadContexts(tx, [parcelId])).get(parcelId) ?? NO_CONTEXT)
        const part = shown === null || now === null ? context : changeOf(shown, context, now)
        if (part === null) return { ...result, changed: false, isStale: true }
        const changed = await saveOrders(tx, [{ parcelId, part }])
        audit(tx, order, { changed, created: result.created })
        return { ...result, changed, isStale: false }
      }),
  }
}
