import type { Audited } from '../../domain/admin/operator-action.ts'
import { clampHealthToClock } from '../../domain/delivery/endpoint-health.ts'
import { shiftKeys } from '../../domain/delivery/endpoint-keys.ts'
import { isOfErased } from '../../domain/history/erased.ts'
import { isSameContext, NO_CONTEXT, type OrderContext, type OrderPart, withPart } from '../../domain/history/order-context.ts'
import type { RecordRules } from '../../domain/history/recording.ts'
import { notAhead } from '../../domain/instant.ts'
import { reactivate, type WatchResult } from '../../domain/polling/poll.ts'
import { loadContexts } from '../../store/history/order-contexts.ts'
import { noteClockMark } from '../../store/history/overwritten-rows.ts'
import { findTombstones } from '../../store/history/tombstones.ts'
import { listEndedByClock, type ScheduleShift } from '../../store/polling/schedule-shift.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import { audit } from '../audit.tx.ts'
import { type SchedulePorts, schedulePolls } from './schedule-poll.tx.ts'

export interface WatchPorts extends SchedulePorts {
  readonly store: Transactions
  readonly tombstoneKey: () => Uint8Array | null
}

/** Makes what watches identifiers within a transaction. */
export function createWatchIn(ports: Omit<WatchPorts, 'store'>, options: RecordRules) {
  /** Returns which identifiers belong to erased parcels. Leaves out identifiers that a new parcel has got since. */
  async function findErased(tx: WriteTx, identifiers: readonly string[], nowMs: number): Promise<ReadonlySet<string>> {
    const key = ports.tombstoneKey()
    if (key === null) return new Set()
    const living = new Set((await tx.findIdentifiers(identifiers)).map(({ value }) => value))
    const tombstones = await findTombstones(tx, key, identifiers)
    return new Set([...tombstones].flatMap(([value, one]) => (living.has(value) || !isOfErased(one, nowMs, options) ? [] : [value])))
  }

  /** Each query handles the whole list. One query per identifier would keep the parcels of a long list locked for thousands of round trips. */
  async function watchAll(tx: WriteTx, identifiers: readonly string[], nowMs: number): Promise<readonly (WatchResult | null)[]> {
    const values = [...new Set(identifiers)]
    const parcelOf = new Map((await tx.findIdentifiers(values)).map(({ value, parcelId }) => [value, parcelId]))
    const nameless = values.filter((value) => !parcelOf.has(value))
    const erased = await findErased(tx, nameless, nowMs)
    const unknown = nameless.filter((value) => !erased.has(value))
    const known = await tx.findParcels([...new Set(parcelOf.values())])
    const made = await tx.createParcels(unknown.length, nowMs)
    const named = unknown.map((value, nth) => ({ value, parcelId: made[nth]?.parcelId ?? 0, isTrackingId: false }))
    for (const { value, parcelId } of named) parcelOf.set(value, parcelId)
    tx.saveIdentifiers(named)
    const active = [...known, ...made].map((parcel) => ({ ...parcel, ...reactivate(parcel, nowMs) }))
    const next = await schedulePolls(tx, active, ports, options)
    tx.saveParcels(next)
    const created = new Set(unknown)
    return identifiers.map((value) => {
      if (erased.has(value)) return null
      const parcelId = parcelOf.get(value) ?? 0
      // An identifier that is listed twice counts as created only the first time.
      return { parcelId, created: created.delete(value) }
    })
  }

  return { findErased, watchAll }
}

/** Saves what is said of the orders of parcels. What changes nothing is left out, so a list that is sent again changes nothing. */
export async function saveOrders(tx: WriteTx, parts: readonly { readonly parcelId: number; readonly part: OrderPart }[]): Promise<boolean> {
  const before = await loadContexts(
    tx,
    parts.map(({ parcelId }) => parcelId),
  )
  const after = new Map<number, OrderContext>()
  for (const { parcelId, part } of parts) after.set(parcelId, withPart(after.get(parcelId) ?? before.get(parcelId) ?? NO_CONTEXT, part))
  const changed = [...after].flatMap(([parcelId, context]) => {
    return isSameContext(context, before.get(parcelId) ?? NO_CONTEXT) ? [] : [{ ...context, parcelId }]
  })
  tx.saveContexts(changed)
  return changed.length > 0
}

interface WatchMany extends Audited {
  readonly identifiers: readonly string[]
  readonly orders?: readonly (OrderPart | null)[]
  readonly nowMs: number
  readonly isAtomic?: boolean
}

/** Creates the verbs by which operators decide which parcels are polled, and when (CONTRACT, `/relay/parcels`). */
export function createWatchParcels(ports: WatchPorts, options: RecordRules) {
  const { store } = ports
  const { findErased, watchAll } = createWatchIn(ports, options)

  return {
    /**
     * Watches an identifier: creates its parcel if there is none, and polls the parcel again if it was no longer polled. Null: the identifier
     * belongs to an erased parcel.
     */
    watch: async ({ identifier, nowMs, ...order }: Audited & { readonly identifier: string; readonly nowMs: number }) => {
      return await store.transaction(async (tx) => {
        const [watched] = await watchAll(tx, [identifier], nowMs)
        if (watched === undefined) throw new Error('an identifier was watched without a result')
        if (watched !== null) audit(tx, order, { created: watched.created })
        return watched
      })
    },

    /**
     * Watches many identifiers in one transaction. Returns a result for each identifier, in their order; null: the identifier belongs to an
     * erased parcel. `isAtomic`: if one identifier belongs to an erased parcel, none is watched, and all results are null. `orders`: what is said
     * of the order of each; null: nothing.
     */
    watchMany: ({ identifiers, orders = [], nowMs, isAtomic = false, ...order }: WatchMany) =>
      store.transaction(async (tx) => {
        if (isAtomic && (await findErased(tx, identifiers, nowMs)).size > 0) return identifiers.map(() => null)
        audit(tx, order)
        const results = await watchAll(tx, identifiers, nowMs)
        const said = results.flatMap((result, at) => {
          const part = orders[at] ?? null
          return result === null || part === null ? [] : [{ parcelId: result.parcelId, part }]
        })
        if (said.length > 0) await saveOrders(tx, said)
        return results
      }),

    /** Stops polling the parcel of an identifier until a push comes or an app asks; null: there is no such parcel. Deletes nothing. */
    unwatch: ({ identifier, ...order }: Audited & { readonly identifier: string }) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        if (known === undefined) return null
        const parcel = await tx.loadParcel(known.parcelId)
        tx.saveParcel({ ...parcel, nextPollAtMs: null, stopped: 'unwatched' })
        audit(tx, order)
        return { parcelId: parcel.parcelId }
      }),

    /**
     * Moves the polls and deliveries of up to `limit` parcels with ids above `afterParcelId` back by `byMs`, because the wall clock was put
     * back that much. If a parcel was polled between `sinceMs` and `nowMs`, its next poll stays: it may have been planned by the new time.
     * Returns the last id that it looked at; null: there are no more.
     */
    shiftSchedule: (request: ScheduleShift) =>
      store.transaction(
        async (tx) => {
          if (request.afterParcelId === 0) await noteClockMark(tx, [(await tx.feedSpan()).last, request.nowMs + request.byMs])
          const states = request.afterParcelId === 0 ? await tx.listEndpoints() : []
          for (const state of states) {
            const keys = state.keys === null ? null : shiftKeys(state.keys, request.byMs)
            const beganAtMs = notAhead(state.beganAtMs, request.nowMs)
            await tx.saveEndpoint({ ...state, keys, beganAtMs, health: clampHealthToClock(state.health, request.nowMs) })
          }
          const ended = await listEndedByClock(tx, request)
          const last = await tx.shiftSchedule(request)
          // Polling ended by the wrong clock, so decide again (DOMAIN 6.1).
          const again = await schedulePolls(tx, await tx.findParcels(ended), ports, options)
          tx.saveParcels(again.filter(({ nextPollAtMs }) => nextPollAtMs !== null))
          return last
        },
        { ofRole: 'poller', announced: true },
      ),

    /**
     * Returns when the parcel of an identifier was erased; null: it was not, or a later parcel may have the identifier. If it was, the carrier must
     * not be asked about the identifier.
     */
    async erasedAtMs({ identifier, nowMs }: { readonly identifier: string; readonly nowMs: number }): Promise<number | null> {
      const key = ports.tombstoneKey()
      if (key === null) return null
      const tombstone = await store.transaction(async (tx) => (await findTombstones(tx, key, [identifier])).get(identifier))
      return tombstone !== undefined && isOfErased(tombstone, nowMs, options) ? tombstone.erasedAtMs : null
    },
  }
}
