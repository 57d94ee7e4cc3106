import { type EndpointHealth, newHealth } from '../../domain/delivery/endpoint-health.ts'
import type { DamagedEndpoint, Endpoint, EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { decodeEndpoint, encodeEndpointSettings, encodeHealth, encodeSealedKeys, isReadableEndpoint } from '../codec.ts'
import type { Session } from '../engine.ts'
import { COLUMNS } from '../schema.ts'
import { rowOf, statement } from '../statement.ts'
import { forgetFailures } from './failures.ts'

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
