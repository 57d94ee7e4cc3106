import type { Actor } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import { parseOrderContext } from '../../core/domain/history/order-context.ts'
import { readIdentifier } from '../../core/domain/identifiers.ts'
import type { Relay, Writes } from '../../core/flow/relay-part.ts'
import type { SavedOrderAnswer } from './order.routes.ts'

export type ManageOrders = ReturnType<typeof createManageOrders>

interface ManageOrdersPorts extends Pick<Relay, 'clock'>, Writes<'saveOrder' | 'erasedAtMs'> {
  /** Called when the feed has an event more. */
  readonly told: () => void
}

const STALE = 'Somebody else has changed the same of this order since the page was loaded, so nothing was saved. Load the page again.'

/** Lets apps and people say to which order a parcel belongs (DOMAIN 8). */
export function createManageOrders({ write, clock, told }: ManageOrdersPorts) {
  return {
    /**
     * Replaces all of it. `body`: as it came. `shownBody`: what it replaces, as it was shown; then it replaces only what differs from that; null: not known.
     * Throws `bad_request`, `bad_tracking_number`, `not_found` (an erased parcel), and `stale_form` if others have changed the same.
     */
    async save(text: string, body: unknown, by: Actor, shownBody: unknown = null): Promise<SavedOrderAnswer> {
      const identifier = readIdentifier(text)
      const context = parseOrderContext(body)
      const shown = shownBody === null ? null : parseOrderContext(shownBody)
      const nowMs = clock.now()
      // The audit trail is kept for longer than the parcel, so it has none of the words.
      const action = { atMs: nowMs, by, action: 'parcel.order_changed', target: { kind: 'parcel', id: identifier }, detail: {} } as const
      const saved = await write.saveOrder({ identifier, context, shown, nowMs, action })
      if (saved === null) {
        const erasedAtMs = await write.erasedAtMs({ identifier, nowMs })
        const when = erasedAtMs === null ? '' : ` at ${new Date(erasedAtMs).toISOString()}`
        throw new AppError('not_found', `The parcel that had this identifier was erased${when}, so nothing can be said of its order.`)
      }
      if (saved.isStale) throw new AppError('stale_form', STALE)
      if (saved.changed) told()
      return { identifier, ...context, created: saved.created, changed: saved.changed }
    },
  }
}
