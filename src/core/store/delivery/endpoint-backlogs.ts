import { setImmediate as nextTurn } from 'node:timers/promises'
import { type ExpressionBuilder, sql } from 'kysely'
import type { EndpointBacklog } from '../../domain/delivery/endpoint-state.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

/** How many rows one statement counts. It reads only an index, and blocks other reads for one or two milliseconds. */
const COUNTED_AT_ONCE = 20_000
const LAST_OF_STRETCH = COUNTED_AT_ONCE - 1
/** The statement about several endpoints counts so many rows of each. An endpoint with as many is counted by itself. */
const FEW = 100

interface Stretch {
  readonly [name: string]: number
  readonly endpointId: number
  readonly parcelId: number
  readonly sequence: number
}

interface Key {
  readonly parcel_id: number
  readonly sequence: number
}

/** The order is that of an index. Without it the planner may read all deliveries until it has found a few that wait. */
const fewOfEach = statement<{ endpointIds: readonly number[] }>()((db, p, { rowsOf }) => {
  const waiting = (of: ExpressionBuilder<Tables & { one: { value: number } }, 'one'>) =>
    of
      .selectFrom('delivery')
      .select('queued_at_ms')
      .whereRef('delivery.endpoint_id', '=', 'one.value')
      .where('state', '<', DELIVERY_STATE.delivered)
      .orderBy('parcel_id')
      .limit(sql.lit(FEW))
      .as('waiting')
  return db
    .selectFrom(rowsOf(p.endpointIds).as('one'))
    .select('one.value as endpoint_id')
    .select((of) => [
      of
        .selectFrom(waiting)
        .select((row) => row.fn.countAll<number>().as('count'))
        .as('waiting'),
      of
        .selectFrom(waiting)
        .select((row) => row.fn.min('waiting.queued_at_ms').as('oldest'))
        .as('oldest'),
      of
        .selectFrom((each) =>
          each
            .selectFrom('delivery')
            .select('sequence')
            .whereRef('delivery.endpoint_id', '=', 'one.value')
            .where('state', '=', DELIVERY_STATE.dead)
            .where('state', '>=', DELIVERY_STATE.delivered)
            .limit(sql.lit(FEW))
            .as('dead'),
        )
        .select((row) => row.fn.countAll<number>().as('count'))
        .as('dead'),
    ])
})
const endOfWaiting = statement<Stretch>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['parcel_id', 'sequence'])
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '<', DELIVERY_STATE.delivered)
    .where(sql<boolean>`(parcel_id, sequence) > (${p.parcelId}, ${p.sequence})`)
    .orderBy('parcel_id')
    .orderBy('sequence')
    .limit(1)
    .offset(LAST_OF_STRETCH),
)
const countStretch = statement<Stretch & { readonly toParcelId: number; readonly toSequence: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select((row) => [row.fn.countAll<number>().as('count'), row.fn.min('queued_at_ms').as('oldest')])
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '<', DELIVERY_STATE.delivered)
    .where(sql<boolean>`(parcel_id, sequence) > (${p.parcelId}, ${p.sequence})`)
    .where(sql<boolean>`(parcel_id, sequence) <= (${p.toParcelId}, ${p.toSequence})`),
)
const countSome = statement<{ endpointId: number; limit: number }>()((db, p) =>
  db
    .selectFrom((of) =>
      of
        .selectFrom('delivery')
        .select('id')
        .where('endpoint_id', '=', p.endpointId)
        .where('state', '<', DELIVERY_STATE.delivered)
        .limit(p.limit)
        .as('some'),
    )
    .select((row) => row.fn.countAll<number>().as('count')),
)
const oldestWaiting = statement()((db) =>
  db
    .selectFrom('endpoint')
    .select((row) => [
      'endpoint.id',
      row
        .selectFrom((of) =>
          of
            .selectFrom('delivery')
            .select('queued_at_ms')
            .whereRef('delivery.endpoint_id', '=', 'endpoint.id')
            .where('state', '<', DELIVERY_STATE.delivered)
            .limit(sql.lit(COUNTED_AT_ONCE))
            .as('waiting'),
        )
        .select((waiting) => waiting.fn.min('waiting.queued_at_ms').as('oldest'))
        .as('oldest'),
    ])
    .where('endpoint.removed_at_ms', 'is', null),
)
const endOfDead = statement<{ endpointId: number; after: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select('sequence')
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', DELIVERY_STATE.dead)
    .where('state', '>=', DELIVERY_STATE.delivered)
    .where('sequence', '>', p.after)
    .orderBy('sequence')
    .limit(1)
    .offset(LAST_OF_STRETCH),
)
const countDead = statement<{ endpointId: number; after: number; to: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', DELIVERY_STATE.dead)
    .where('state', '>=', DELIVERY_STATE.delivered)
    .where('sequence', '>', p.after)
    .where('sequence', '<=', p.to),
)

const NO_END = Number.MAX_SAFE_INTEGER

/**
 * Counts the waiting and the dead deliveries of endpoints, by their ids: in one query those of which there are few, as of most endpoints, and the
 * others in parts, so that other reads can run in between.
 */
export async function countBacklogs(session: Session, endpointIds: readonly string[]): Promise<ReadonlyMap<string, EndpointBacklog>> {
  const backlogs = new Map<string, EndpointBacklog>()
  for (const { endpoint_id: id, waiting, oldest, dead } of await session.all(fewOfEach, { endpointIds: endpointIds.map(Number) })) {
    const isFew = Math.max(waiting ?? 0, dead ?? 0) < FEW
    backlogs.set(String(id), isFew ? { waiting: waiting ?? 0, oldestAtMs: oldest, dead: dead ?? 0 } : await countBacklog(session, id))
  }
  return backlogs
}

/** Counts an endpoint's waiting and dead deliveries in chunks, so that other reads run in between. */
async function countBacklog(session: Session, endpointId: number): Promise<EndpointBacklog> {
  let waiting = 0
  let oldestAtMs: number | null = null
  for (let from: Key | undefined = { parcel_id: 0, sequence: 0 }; from !== undefined; ) {
    const stretch: Stretch = { endpointId, parcelId: from.parcel_id, sequence: from.sequence }
    const [end]: readonly Key[] = await session.all(endOfWaiting, stretch)
    const [counted] = await session.all(countStretch, {
      ...stretch,
      toParcelId: end?.parcel_id ?? NO_END,
      toSequence: end?.sequence ?? NO_END,
    })
    waiting += counted?.count ?? 0
    const oldest = counted?.oldest ?? null
    if (oldest !== null) oldestAtMs = Math.min(oldest, oldestAtMs ?? oldest)
    from = end
    if (end !== undefined) await nextTurn()
  }
  return { waiting, oldestAtMs, dead: await countDeadOf(session, endpointId) }
}

/** Returns when the oldest waiting delivery of each endpoint was queued, in one query; absent: none waits. Looks at up to 20,000 of each. */
export async function listOldestWaiting(session: Session): Promise<ReadonlyMap<string, number>> {
  const found = await session.all(oldestWaiting, {})
  return new Map(found.flatMap(({ id, oldest }) => (oldest === null ? [] : [[String(id), oldest] as const])))
}

/** Counts the deliveries that wait for an endpoint, and stops at `limit`. */
export async function countWaiting(session: Session, endpointId: string, limit: number): Promise<number> {
  const [some] = await session.all(countSome, { endpointId: Number(endpointId), limit })
  return some?.count ?? 0
}

async function countDeadOf(session: Session, endpointId: number): Promise<number> {
  let dead = 0
  for (let after: number | undefined = 0; after !== undefined; ) {
    const [end]: readonly { sequence: number }[] = await session.all(endOfDead, { endpointId, after })
    const [counted] = await session.all(countDead, { endpointId, after, to: end?.sequence ?? NO_END })
    dead += counted?.count ?? 0
    after = end?.sequence
    if (after !== undefined) await nextTurn()
  }
  return dead
}
