import { z } from 'zod'
import type { AttemptResult, FailureReason } from '../delivery/delivery.ts'
import type { TimeCursor } from '../delivery/operator-event.ts'
import { digest } from '../text.ts'

export const ACTOR_KINDS = ['app', 'person', 'signal', 'relay', 'command'] as const

/**
 * Who gives an order. `app`: an app, by its token. `person`: a person whom a proxy has logged in. `signal`: somebody on this machine, by a signal.
 * `relay`: the relay itself. `command`: the user of a command on this machine. `address`: where the order came from; null: from this machine.
 */
export interface Actor {
  readonly kind: (typeof ACTOR_KINDS)[number]
  readonly name: string
  readonly address: string | null
  /** The form of the portal by which the order was given; absent: no form. */
  readonly form?: SentForm
}

/** A form of the portal that was sent. Its order is carried out once, however often the form is sent. */
export interface SentForm {
  /** A random text. Each form has its own. */
  readonly id: string
  /** A keyed digest of what was filled in. */
  readonly fields: string
}

export const TARGET_KINDS = ['endpoint', 'delivery', 'push', 'inbox', 'parcel', 'job', 'store'] as const

export interface ActionTarget {
  readonly kind: (typeof TARGET_KINDS)[number]
  readonly id: string
}

export const ACTION_NAMES = [
  'endpoint.added',
  'endpoint.changed',
  'endpoint.removed',
  'endpoint.key_replaced',
  'endpoint.retried',
  'endpoint.tested',
  'operator.tested',
  'operator.enabled',
  'deliveries.replayed',
  'delivery.replayed',
  'delivery.retried',
  'delivery.skipped',
  'push.reprocessed',
  'push.dismissed',
  'inbox.reprocessed',
  'inbox.dismissed',
  'parcel.watched',
  'parcel.unwatched',
  'parcel.refreshed',
  'parcel.order_changed',
  'parcels.watched',
  'parcels.erased',
  'job.cancelled',
  'store.move_started',
  'store.rebuild_started',
  'secrets.resealed',
  'secrets.token_key_replaced',
  'secrets.tombstones_given_up',
  'store.backup_started',
  'store.restored',
  'config.reloaded',
  'retention.ordered',
  'retention.gave_up',
] as const

export type ActionName = (typeof ACTION_NAMES)[number]

/** An order that was carried out, as the audit trail stores it: who gave it, when, what it was, and details without secrets. */
export interface OperatorAction {
  readonly atMs: number
  readonly by: Actor
  readonly action: ActionName
  readonly target: ActionTarget | null
  readonly detail: Readonly<Record<string, unknown>>
  /**
   * What the answer to the order showed and nothing else keeps, as JSON. It is kept for ten minutes, for a form that is sent again, and not in
   * the audit trail. Never a key.
   */
  readonly shown?: unknown
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

/** What a form has done when it was sent before. */
export interface FormerOrder {
  readonly action: KeptAction
  /** See `SentForm`. Null: it is no longer kept. */
  readonly fields: string | null
  /** See `OperatorAction`. Null: nothing, or it is no longer kept. */
  readonly shown: unknown
}

/** For this long after its order, a form that is sent again is answered with the same page. */
export const SHOWN_AGAIN_MS = 10 * 60_000

/** Which actions of the audit trail are listed; null: all. */
export interface ActionFilter {
  /** The name of who gave the order, as it was recorded. */
  readonly by: string | null
  readonly action: string | null
  readonly fromMs: number | null
  /** Exclusive. */
  readonly toMs: number | null
}

export interface ListedTarget {
  readonly kind: string
  readonly id: string
}

/** Names and targets with more characters are in the list of all actions, but no filter finds them. */
export const LISTED_LENGTH_MAX = 200

/** Selects a page of the audit trail, the newest action first. `before` null: the page begins with the newest action. */
export interface ActionQuery extends Partial<ActionFilter> {
  /** The things that the actions are about; absent or null: any. */
  readonly targets?: readonly ListedTarget[] | null
  readonly before: TimeCursor | null
  readonly limit: number
}

export interface ActionPage {
  readonly actions: readonly KeptAction[]
  /** Where the next page begins; null: there are no more actions. Even a short or empty page may have a next one. */
  readonly next: TimeCursor | null
}

// What a form of the portal shows again when it is sent twice (`OperatorAction.shown`).

/** Names a key by a digest of its encrypted form. The key itself is read from there. */
export function shownKey(sealed: string): object {
  return { key: digest(sealed) }
}

export function isShownKey(shown: unknown, sealed: string): boolean {
  return typeof shown === 'object' && shown !== null && 'key' in shown && shown.key === digest(sealed)
}

const common = { durationMs: z.number(), answerStart: z.string().transform((text) => Buffer.from(text, 'base64')) }
const testSchema = z.discriminatedUnion('kind', [
  z.object({ ...common, kind: z.literal('accepted'), status: z.number() }),
  z.object({ ...common, kind: z.literal('rejected'), status: z.number(), retryAfterMs: z.number().nullable() }),
  z.object({ ...common, kind: z.literal('failed'), reason: z.custom<FailureReason>(), detail: z.string() }),
])

/** Writes the result of a test as plain data, without the key that signed it. */
export function shownTest({ answerStart, ...result }: AttemptResult): object {
  return { ...result, byNextKey: undefined, answerStart: Buffer.from(answerStart).toString('base64') }
}

/** Reads what `shownTest` wrote; null: it is no longer kept. */
export function readShownTest(shown: unknown): AttemptResult | null {
  return testSchema.safeParse(shown).data ?? null
}
