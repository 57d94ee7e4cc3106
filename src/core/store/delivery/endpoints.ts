import { FAILURE_GROUPS_MAX, FAILURES_COUNT_FOR_MS, type FailureGroup, type FailureNote } from '../../domain/delivery/dispatch-round.ts'
import { type EndpointHealth, newHealth } from '../../domain/delivery/endpoint-health.ts'
import type { DamagedEndpoint, Endpoint, EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { decodeEndpoint, encodeEndpointSettings, encodeHealth, encodeSealedKeys, isReadableEndpoint } from '../codec.ts'
import type { Session } from '../engine.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS, type Tables } from '../tables.ts'

const standing = statement()((db) => db.selectFrom('endpoint').selectAll().where('removed_at_ms', 'is', null).orderBy('id'))

type Health = ReturnType<typeof encodeHealth>
const HEALTH: Health = encodeHealth(newHealth)

type SavedEndpoint = ReturnType<typeof encodeEndpoint>
const { id: _id, removed_at_ms: _removed, ...SAVED } = COLUMNS.endpoint

const insertEndpoint = statement<SavedEndpoint>()((db, p) => db.insertInto('endpoint').values(rowOf(SAVED, p)).returning('id'))

const updateEndpoint = statement<SavedEndpoint & { id: number }>()((db, p) =>
  db
    .updateTable('endpoint')
    .set({ ...rowOf<SavedEndpoint>(SAVED, p), removed_at_ms: null })
    .where('id', '=', p.id),
)

const everyId = statement()((db) => db.selectFrom('endpoint').select('id').orderBy('id'))
const named = statement<{ name: string }>()((db, p) =>
  db
    .selectFrom('endpoint')
    .select(['id', 'settings', 'sealed_keys', 'began_at_ms'])
    .where('name', '=', p.name)
    .where('removed_at_ms', 'is', null),
)

/** Inserts a row that counts as removed until the endpoint is saved. So if the process crashes before that, no endpoint shows up. */
const insertReserved = statement<{ nowMs: number }>()((db, p) =>
  db.insertInto('endpoint').values({ name: '', origin: 'managed', settings: '{}', removed_at_ms: p.nowMs }).returning('id'),
)

const markRemoved = statement<{ id: number; nowMs: number }>()((db, p) =>
  db.updateTable('endpoint').set({ removed_at_ms: p.nowMs }).where('id', '=', p.id),
)

/** Returns the ids of all endpoints, even removed ones. */
export async function listEndpointIds(session: Session): Promise<readonly number[]> {
  return (await session.all(everyId, {})).map(({ id }) => id)
}

/** Lists the endpoints. Leaves out an endpoint whose row is damaged: its deliveries wait until a config names it, or it is removed. */
export async function listEndpoints(session: Session): Promise<readonly EndpointState[]> {
  return (await session.all(standing, {})).filter(isReadableEndpoint).map(decodeEndpoint)
}

export async function listDamagedEndpoints(session: Session): Promise<readonly DamagedEndpoint[]> {
  return (await session.all(standing, {})).filter((row) => !isReadableEndpoint(row)).map(({ id, name }) => ({ id: String(id), name }))
}

export async function reserveEndpoint(session: Session, nowMs: number): Promise<string> {
  return idOf(await session.all(insertReserved, { nowMs }))
}

/** Encodes an endpoint as columns, to store them or to compare two states of an endpoint. */
export function encodeEndpoint(state: EndpointState) {
  const { endpoint, origin, disabled, disabledSince, health, keys, queuedTo, firstSequence, beganAtMs, backfilled } = state
  return {
    name: endpoint.name,
    origin,
    settings: encodeEndpointSettings(state),
    disabled,
    disabled_at_ms: disabledSince?.atMs ?? null,
    disabled_by: disabledSince?.by ?? null,
    ...encodeHealth(health),
    sealed_keys: encodeSealedKeys(keys),
    queued_to: queuedTo,
    first_sequence: firstSequence,
    began_at_ms: beganAtMs,
    backfill_from: backfilled?.from ?? null,
    backfill_to: backfilled?.to ?? null,
    backfill_earlier: JSON.stringify(backfilled?.earlier ?? []),
  }
}

/** Saves an endpoint and returns its id. Waits for the database only if the endpoint is new, because it then has no id yet. */
export async function saveEndpoint(session: Session, state: EndpointState): Promise<Endpoint['id']> {
  const { endpoint } = state
  const columns = encodeEndpoint(state)
  const row = endpoint.id === '' ? await damagedRow(session, endpoint.name) : { id: Number(endpoint.id) }
  if (row === null) return idOf(await session.all(insertEndpoint, columns))
  session.enqueueWrite(updateEndpoint, { ...columns, ...row })
  return String(row.id)
}

/** An endpoint of the config that has the name of a damaged row takes over the row, with its deliveries and the time at which it began. */
async function damagedRow(session: Session, name: string): Promise<{ readonly id: number; readonly began_at_ms: number } | null> {
  const [row] = await session.all(named, { name })
  return row === undefined || isReadableEndpoint(row) ? null : { id: row.id, began_at_ms: row.began_at_ms }
}

const updateHealth = statement<Health & { id: number }>()((db, p) =>
  db.updateTable('endpoint').set(rowOf<Health>(HEALTH, p)).where('id', '=', p.id),
)

export function saveHealth(session: Session, endpointId: string, health: EndpointHealth): void {
  session.enqueueWrite(updateHealth, { id: Number(endpointId), ...encodeHealth(health) })
}

function idOf([row]: readonly { readonly id: number }[]): string {
  if (row === undefined) throw new Error('the insert of an endpoint returned no id')
  return String(row.id)
}

export function removeEndpoint(session: Session, endpointId: string, nowMs: number): void {
  session.enqueueWrite(markRemoved, { id: Number(endpointId), nowMs })
  forgetFailures(session, Number(endpointId))
}

const add = statement<Tables['failure'] & { readonly staleBeforeMs: number }>()((db, p, { greatest, least }) =>
  db
    .insertInto('failure')
    .values(rowOf<Tables['failure']>(COLUMNS.failure, p))
    .onConflict((conflict) =>
      conflict.columns(['endpoint_id', 'digest']).doUpdateSet((row) => {
        const isStale = row('failure.last_at_ms', '<', p.staleBeforeMs)
        const sum = row('failure.count', '+', row.ref('excluded.count'))
        return {
          answer: row.ref('excluded.answer'),
          delivery_id: row.ref('excluded.delivery_id'),
          count: row.case().when(isStale).then(row.ref('excluded.count')).else(sum).end(),
          first_at_ms: row
            .case()
            .when(isStale)
            .then(row.ref('excluded.first_at_ms'))
            .else(least(row.ref('failure.first_at_ms'), row.ref('excluded.first_at_ms')))
            .end(),
          last_at_ms: greatest(row.ref('failure.last_at_ms'), row.ref('excluded.last_at_ms')),
        }
      }),
    ),
)
const forgetOldest = statement<{ endpointId: number }>()((db, p) =>
  db
    .deleteFrom('failure')
    .where('endpoint_id', '=', p.endpointId)
    .where('last_at_ms', '<', (of) =>
      of
        .selectFrom('failure as kept')
        .select('kept.last_at_ms')
        .where('kept.endpoint_id', '=', p.endpointId)
        .orderBy('kept.last_at_ms', 'desc')
        .limit(1)
        .offset(FAILURE_GROUPS_MAX - 1),
    ),
)
const forgetAll = statement<{ endpointId: number }>()((db, p) => db.deleteFrom('failure').where('endpoint_id', '=', p.endpointId))

/** Adds failures to the groups of equal failures of their endpoints. */
export function noteFailures(session: Session, failures: readonly FailureNote[], nowMs: number): void {
  for (const { endpointId, answerStart, firstAtMs, lastAtMs, deliveryId, ...failure } of failures) {
    const answer = answerStart.byteLength === 0 ? null : answerStart
    const at = { endpoint_id: Number(endpointId), first_at_ms: firstAtMs, last_at_ms: lastAtMs, delivery_id: deliveryId }
    session.enqueueWrite(add, { ...failure, ...at, answer, staleBeforeMs: nowMs - FAILURES_COUNT_FOR_MS })
  }
  for (const endpointId of new Set(failures.map((failure) => Number(failure.endpointId))))
    session.enqueueWrite(forgetOldest, { endpointId })
}

/** Deletes the failures of an endpoint that is removed. */
function forgetFailures(session: Session, endpointId: number): void {
  session.enqueueWrite(forgetAll, { endpointId })
}

const ofEndpoint = statement<{ endpointId: number; sinceMs: number; limit: number }>()((db, p) =>
  db
    .selectFrom('failure')
    .selectAll()
    .where('endpoint_id', '=', p.endpointId)
    .where('last_at_ms', '>=', p.sinceMs)
    .orderBy('last_at_ms', 'desc')
    .limit(p.limit),
)

/** Lists the groups of an endpoint that have a failure since `sinceMs`, latest first. */
export async function listFailures(
  session: Session,
  { endpointId, sinceMs }: { readonly endpointId: string; readonly sinceMs: number },
): Promise<readonly FailureGroup[]> {
  const rows = await session.all(ofEndpoint, { endpointId: Number(endpointId), sinceMs, limit: FAILURE_GROUPS_MAX })
  return rows.map(decodeFailure)
}

const lastOfAll = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('failure')
    .selectAll()
    .where('endpoint_id', 'in', oneOf(p.ids))
    .where('last_at_ms', '=', (of) =>
      of
        .selectFrom('failure as last')
        .select((row) => row.fn.max('last.last_at_ms').as('at'))
        .whereRef('last.endpoint_id', '=', 'failure.endpoint_id'),
    ),
)

/** Returns, by endpoint id, the group with the latest failure of each endpoint. */
export async function lastFailures(session: Session, endpointIds: readonly string[]): Promise<ReadonlyMap<string, FailureGroup>> {
  if (endpointIds.length === 0) return new Map()
  const rows = await session.all(lastOfAll, { ids: endpointIds.map(Number) })
  return new Map(rows.map((row) => [String(row.endpoint_id), decodeFailure(row)]))
}

function decodeFailure(row: Tables['failure']): FailureGroup {
  return {
    status: row.status,
    reason: row.reason,
    answerStart: row.answer ?? new Uint8Array(),
    count: row.count,
    firstAtMs: row.first_at_ms,
    lastAtMs: row.last_at_ms,
    deliveryId: row.delivery_id,
  }
}
