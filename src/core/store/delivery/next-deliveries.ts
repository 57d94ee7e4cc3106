import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import type { NextDeliveries, NextDelivery, NextRequest, ProbeRequest } from '../../domain/delivery/dispatch-round.ts'
import { watchdogEventIn } from '../../domain/delivery/watchdog-event.ts'
import { DELIVERY_STATE, decodeLabels } from '../codec.ts'
import type { Session } from '../engine.ts'
import { type Dialect, statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

/** The round of a delivery that an operator asked to send now. It sorts before all other rounds. */
export const ASKED_FOR = -1
/** The round of a delivery that has not been attempted since it was queued. */
export const UNTRIED = 0
const FIRST_ROUND = 1
/** The highest number that the column can hold on every engine. */
const ROUND_MAX = 2 ** 31 - 1

type Look = { endpointId: number; limit: number; nowMs: number }
export type NextLook = Look & { underWay: readonly number[]; round: number }

/**
 * Selects waiting deliveries of an endpoint. Leaves out skipped deliveries, which have a reason. `by its time`: reads the body of a row only if
 * the row is due now, because most rows are not.
 */
function waiting(db: Kysely<Tables>, p: Look, isDue: 'is due' | 'by its time') {
  const body = (of: ExpressionBuilder<Tables, 'delivery'>) =>
    of
      .case()
      .when('inbox_id', 'is', null)
      .then(of.selectFrom('composed_event').select('composed_event.body').whereRef('composed_event.sequence', '=', 'delivery.sequence'))
      .else(of.selectFrom('inbox').select('inbox.body').whereRef('inbox.id', '=', 'delivery.inbox_id'))
      .end()
  return db
    .selectFrom('delivery')
    .select([
      'id',
      'parcel_id',
      'sequence',
      'previous_sequence',
      'inbox_id',
      'attempts',
      'spared',
      'limited',
      'first_failed_at_ms',
      'next_attempt_at_ms',
      'round',
    ])
    .select((of) =>
      (isDue === 'is due' ? body(of) : of.case().when('next_attempt_at_ms', '>', p.nowMs).then(null).else(body(of)).end()).as('body'),
    )
    .select((of) => [saidOf(of, 'reference'), saidOf(of, 'labels')])
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', DELIVERY_STATE.due)
    .where('reason', 'is', null)
    .limit(p.limit)
}

/** Selects what is said of the order of a parcel, by its primary key: with a join the planner might read all of them. */
function saidOf<Name extends 'reference' | 'labels'>(of: ExpressionBuilder<Tables, 'delivery'>, name: Name) {
  return of
    .selectFrom('order_context')
    .select(`order_context.${name} as said`)
    .whereRef('order_context.parcel_id', '=', 'delivery.parcel_id')
    .as(name)
}

/**
 * Selects waiting deliveries of parcels that have no delivery under way. Reads which parcels these are, because a join may have moved a delivery
 * under way to another parcel.
 */
export function waitingBesides(db: Kysely<Tables>, p: NextLook, { oneOf }: Dialect, isDue: 'is due' | 'by its time') {
  return waiting(db, p, isDue).where('parcel_id', 'not in', (of) =>
    of.selectFrom('delivery as under_way').select('under_way.parcel_id').where('under_way.id', 'in', oneOf(p.underWay)),
  )
}

const nextUntried = statement<NextLook>()((db, p, dialect) =>
  waitingBesides(db, p, dialect, 'is due').where('round', '<=', UNTRIED).orderBy('round').orderBy('next_attempt_at_ms'),
)
/** Selects deliveries of earlier rounds of the endpoint (see the glossary): they are due now. */
export const nextWoken = statement<NextLook>()((db, p, dialect) =>
  waitingBesides(db, p, dialect, 'is due')
    .where('round', '>', UNTRIED)
    .where('round', '<', p.round)
    .orderBy('round')
    .orderBy('next_attempt_at_ms'),
)
/** Selects deliveries of the endpoint's present round: each is due at its own time. */
const nextRetried = statement<NextLook>()((db, p, dialect) =>
  waitingBesides(db, p, dialect, 'by its time').where('round', '=', p.round).orderBy('next_attempt_at_ms'),
)

/** The rows that `nextUntried`, `nextWoken` and `nextRetried` select. */
export interface NextFound extends Pick<NextDeliveries, 'lookAgainAtMs'> {
  readonly untried: readonly NextRow[]
  readonly woken: readonly NextRow[]
  readonly retried: readonly NextRow[]
}

/** Each statement follows the order of the partial index of due deliveries, so its cost does not grow with the backlog. */
async function findEach(session: Session, look: NextLook): Promise<NextFound> {
  const [untried, woken, retried] = await Promise.all([
    session.all(nextUntried, look),
    look.round === FIRST_ROUND ? [] : session.all(nextWoken, look),
    session.all(nextRetried, look),
  ])
  return { untried, woken, retried, lookAgainAtMs: null }
}

/** See `WriteTx.findNextDeliveries`. */
export async function findNextDeliveries(
  session: Session,
  request: NextRequest,
  find: (look: NextLook) => Promise<NextFound> = (look) => findEach(session, look),
): Promise<NextDeliveries> {
  const { endpointId, underWay, limit, nowMs, round, wokenAtMs } = request
  const { untried, woken, retried, lookAgainAtMs } = await find({ endpointId: Number(endpointId), underWay, limit, nowMs, round })
  const isAsked = (row: NextRow) => row.round === ASKED_FOR
  const untriedNext = (row: NextRow) => decodeNext(row, endpointId, Math.min(row.next_attempt_at_ms, nowMs))
  const rest = [
    ...untried.filter((row) => !isAsked(row)).map(untriedNext),
    ...woken.map((row) => decodeNext(row, endpointId, Math.min(row.next_attempt_at_ms, wokenAtMs))),
    ...retried.map((row) => decodeNext(row, endpointId, row.next_attempt_at_ms)),
  ]
  if (woken.length > 0 || retried.length > 0) rest.sort((one, other) => one.dueAtMs - other.dueAtMs)
  // A delivery that an operator asked to send goes first, even if others have been due for longer.
  const deliveries = [...untried.filter(isAsked).map(untriedNext), ...rest].slice(0, limit)
  return { deliveries, lookAgainAtMs }
}

type ProbeLookup = { exceptParcelIds: readonly number[]; beforeRound: number }

const nextOfAll = statement<Look & ProbeLookup>()((db, p, { oneOf }) =>
  waiting(db, p, 'is due')
    .where('parcel_id', 'not in', oneOf(p.exceptParcelIds))
    .where('round', '<', p.beforeRound)
    .orderBy('round')
    .orderBy('next_attempt_at_ms'),
)

/**
 * Finds the next probe of a failing endpoint: a delivery that was never attempted or, if there is none, the delivery whose last attempt was
 * longest ago. Null: nothing waits. A parcel has at most one due delivery, so the search skips at most one row for each excluded parcel.
 */
export async function findProbe(
  session: Session,
  { endpointId, exceptParcelIds, beforeRound, nowMs }: ProbeRequest,
): Promise<NextDelivery | null> {
  const rounds = { beforeRound: beforeRound ?? ROUND_MAX }
  const look = { endpointId: Number(endpointId), exceptParcelIds, ...rounds, limit: 1, nowMs }
  const [row] = await session.all(nextOfAll, look)
  return row === undefined ? null : decodeNext(row, endpointId, nowMs)
}

const anyOfAll = statement<{ endpointId: number } & ProbeLookup>()((db, p, { oneOf }) =>
  db
    .selectFrom('delivery')
    .select('id')
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', DELIVERY_STATE.due)
    .where('reason', 'is', null)
    .where('parcel_id', 'not in', oneOf(p.exceptParcelIds))
    .where('round', '<', p.beforeRound)
    .orderBy('round')
    .orderBy('next_attempt_at_ms')
    .limit(sql.lit(1)),
)

/** Whether a failing endpoint has a delivery for a probe; see `findProbe`. */
export async function hasProbe(
  session: Pick<Session, 'all'>,
  { endpointId, exceptParcelIds, beforeRound }: Omit<ProbeRequest, 'nowMs'>,
): Promise<boolean> {
  const rows = await session.all(anyOfAll, { endpointId: Number(endpointId), exceptParcelIds, beforeRound: beforeRound ?? ROUND_MAX })
  return rows.length > 0
}

const hasten = statement<{ id: number }>()((db, p, { unindexed }) =>
  db
    .updateTable('delivery')
    .set({ round: ASKED_FOR })
    .where('id', '=', p.id)
    .where((row) => row(unindexed(row.ref('state')), '=', DELIVERY_STATE.due)),
)
const standing = statement<{ id: number }>()((db, p) => db.selectFrom('delivery').select(['endpoint_id', 'state']).where('id', '=', p.id))

/** Puts a waiting delivery before all others of its endpoint, and returns its state; null: there is no such delivery. */
export async function hastenDelivery(
  session: Session,
  deliveryId: number,
): Promise<{ readonly endpointId: string; readonly state: 'due' | 'behind' | 'ended' } | null> {
  await session.run(hasten, { id: deliveryId })
  const [row] = await session.all(standing, { id: deliveryId })
  if (row === undefined) return null
  const state = row.state === DELIVERY_STATE.due ? 'due' : row.state === DELIVERY_STATE.behind ? 'behind' : 'ended'
  return { endpointId: String(row.endpoint_id), state }
}

const parcelsWaiting = statement<{ endpointId: number; limit: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select('parcel_id')
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', DELIVERY_STATE.due)
    .orderBy('round')
    .orderBy('next_attempt_at_ms')
    .limit(p.limit),
)

/** Whether a parcel outside `parcelIds` has a due delivery. A parcel has at most one, so one row more than `parcelIds` is enough. */
export async function waitsForOthers(session: Session, endpointId: string, parcelIds: readonly number[]): Promise<boolean> {
  const known = new Set(parcelIds)
  const rows = await session.all(parcelsWaiting, { endpointId: Number(endpointId), limit: known.size + 1 })
  return rows.some((row) => !known.has(row.parcel_id))
}

export interface NextRow {
  readonly id: number
  readonly parcel_id: number
  readonly sequence: number
  readonly previous_sequence: number
  readonly inbox_id: number | null
  readonly attempts: number
  readonly spared: number
  readonly limited: number
  readonly first_failed_at_ms: number | null
  readonly next_attempt_at_ms: number
  readonly round: number
  readonly body: Uint8Array | null
  readonly reference: string | null
  readonly labels: string | null
}

function decodeNext(row: NextRow, endpointId: string, dueAtMs: number): NextDelivery {
  const event = row.inbox_id !== null || row.body === null ? null : watchdogEventIn(row.body)
  return {
    deliveryId: row.id,
    endpointId,
    parcelId: row.parcel_id,
    sequence: row.sequence,
    previousSequence: row.previous_sequence,
    plannedAtMs: row.next_attempt_at_ms,
    attempts: row.attempts,
    spared: row.spared,
    limited: row.limited,
    firstFailedAtMs: row.first_failed_at_ms,
    dueAtMs,
    body: row.body,
    order: row.labels === null ? null : { reference: row.reference, labels: decodeLabels(row.labels) },
    ...(event === null ? {} : { event }),
  }
}
