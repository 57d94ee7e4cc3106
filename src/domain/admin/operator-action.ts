import type { TimeCursor } from '../delivery/operator-event.ts'

/**
 * Who gives an order. `app`: an app, by its token. `person`: a person whom a proxy has logged in. `signal`: somebody on this machine, by a signal.
 * `relay`: the relay itself. `command`: the user of a command on this machine. `address`: where the order came from; null: from this machine.
 */
export interface Actor {
  readonly kind: 'app' | 'person' | 'signal' | 'relay' | 'command'
  readonly name: string
  readonly address: string | null
}

export interface ActionTarget {
  readonly kind: 'endpoint' | 'delivery' | 'push' | 'inbox' | 'parcel' | 'job' | 'store'
  readonly id: string
}

export type ActionName =
  | 'endpoint.added'
  | 'endpoint.changed'
  | 'endpoint.removed'
  | 'endpoint.key_replaced'
  | 'endpoint.retried'
  | 'endpoint.tested'
  | 'operator.tested'
  | 'deliveries.replayed'
  | 'delivery.replayed'
  | 'delivery.retried'
  | 'delivery.skipped'
  | 'push.reprocessed'
  | 'push.dismissed'
  | 'inbox.reprocessed'
  | 'inbox.dismissed'
  | 'parcel.watched'
  | 'parcel.unwatched'
  | 'parcel.refreshed'
  | 'parcels.watched'
  | 'parcels.erased'
  | 'job.cancelled'
  | 'store.move_started'
  | 'store.rebuild_started'
  | 'secrets.resealed'
  | 'secrets.token_key_replaced'
  | 'store.backup_started'
  | 'store.restored'
  | 'config.reloaded'
  | 'retention.ordered'
  | 'retention.gave_up'

/** An order that was carried out, as the audit trail stores it: who gave it, when, what it was, and details without secrets. */
export interface OperatorAction {
  readonly atMs: number
  readonly by: Actor
  readonly action: ActionName
  readonly target: ActionTarget | null
  readonly detail: Readonly<Record<string, unknown>>
}

/** A request to the store, with the order behind it. The transaction of the request also adds the order to the audit trail. */
export interface Audited {
  /** Absent: nobody gave an order. */
  readonly action?: OperatorAction
}

/** An action read from the audit trail. Another version of the relay may have written it, so its names may be unknown to this version. */
export interface KeptAction extends Pick<OperatorAction, 'atMs' | 'detail'> {
  readonly id: number
  readonly by: { readonly kind: string; readonly name: string; readonly address: string | null }
  readonly action: string
  readonly target: { readonly kind: string; readonly id: string } | null
}

/** Selects a page of the audit trail, the newest action first. `before` null: the page begins with the newest action. */
export interface ActionQuery {
  readonly before: TimeCursor | null
  readonly limit: number
}
