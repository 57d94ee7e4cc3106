import { clampHealthToClock } from '../../domain/delivery/endpoint-health.ts'
import type { RecordRules } from '../../domain/history/record-rules.ts'
import { reactivate } from '../../domain/polling/next-poll.ts'
import type { WatchResult } from '../../domain/polling/poll.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'
import { type SchedulePorts, schedulePoll } from './schedule-poll.tx.ts'

type WatchVerbs = Pick<WriteSide, 'watch' | 'watchMany' | 'unwatch' | 'shiftSchedule'>

/** The verbs by which operators decide what is polled, and when (CONTRACT, `/relay/parcels`). */
export function createWatchParcels(
  ports: SchedulePorts & { readonly store: Pick<WriteStore, 'transaction'> },
  options: RecordRules,
): WatchVerbs {
  const { store } = ports

  async function watchOne(tx: WriteTx, identifier: string, nowMs: number): Promise<WatchResult> {
    const [known] = await tx.findIdentifiers([identifier])
    const parcel = known === undefined ? await tx.createParcel(nowMs) : await tx.loadParcel(known.parcelId)
    if (known === undefined) tx.saveIdentifier({ value: identifier, parcelId: parcel.parcelId, isTrackingId: false })
    const { parcelId } = parcel
    const next = await schedulePoll(tx, { ...parcel, ...reactivate(parcel, nowMs) }, ports, options)
    tx.saveParcel(next)
    const revivesAtMs = next.stopped === 'unknown' ? await tx.pollableAgainAtMs(parcelId) : null
    return { parcelId, created: known === undefined, revivesAtMs }
  }

  return {
    watch: ({ identifier, nowMs }) => store.transaction((tx) => watchOne(tx, identifier, nowMs)),

    watchMany: ({ identifiers, nowMs }) =>
      store.transaction(async (tx) => {
        const watched: WatchResult[] = []
        for (const identifier of identifiers) watched.push(await watchOne(tx, identifier, nowMs))
        return watched
      }),

    unwatch: ({ identifier }) =>
      store.transaction(async (tx) => {
        const [known] = await tx.findIdentifiers([identifier])
        if (known === undefined) return null
        const parcel = await tx.loadParcel(known.parcelId)
        tx.saveParcel({ ...parcel, nextPollAtMs: null, stopped: 'unwatched' })
        return { parcelId: parcel.parcelId }
      }),

    shiftSchedule: (request) =>
      store.transaction(
        async (tx) => {
          const states = request.afterParcelId === 0 ? await tx.listEndpoints() : []
          for (const state of states) await tx.saveEndpoint({ ...state, health: clampHealthToClock(state.health, request.nowMs) })
          return await tx.shiftSchedule(request)
        },
        { ofRole: 'poller', announced: true },
      ),
  }
}
