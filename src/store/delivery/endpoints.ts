import type { DamagedEndpoint, Endpoint } from '../../domain/delivery/endpoint.ts'
import type { EndpointHealth } from '../../domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { decodeEndpoint, encodeEndpointSettings, encodeHealth, encodeSealedKeys, isReadableEndpoint } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { forgetFailures } from './failures.ts'

const standing = statement()((db) => db.selectFrom('endpoint').selectAll().where('removed_at_ms', 'is', null).orderBy('id'))

/** The parameters for the health columns. This is a type, because an interface is not assignable to `Params`. */
type HealthColumns = {
  readonly succeededAtMs: number | null
  readonly failingSinceMs: number | null
  readonly failedForMs: number
  readonly failedParcels: string
  readonly probeAtMs: number | null
  readonly probesFailed: number
  readonly refusedFrom: number | null
  readonly refusedAtMs: number | null
  readonly round: number
  readonly wokenAtMs: number
  readonly alarmedAtMs: number | null
  readonly pace: string | null
}
type EndpointColumns = HealthColumns & {
  readonly name: string
  readonly origin: string
  readonly settings: string
  readonly disabled: string | null
  readonly disabledAtMs: number | null
  readonly disabledBy: string | null
  readonly sealedKeys: string | null
  readonly queuedTo: number | null
  readonly firstSequence: number
  readonly beganAtMs: number
  readonly backfillFrom: number | null
  readonly backfillTo: number | null
  readonly backfillEarlier: string
}

const healthColumnsOf = (p: HealthColumns) => ({
  succeeded_at_ms: p.succeededAtMs,
  failing_since_ms: p.failingSinceMs,
  failed_for_ms: p.failedForMs,
  failed_parcels: p.failedParcels,
  probe_at_ms: p.probeAtMs,
  probes_failed: p.probesFailed,
  refused_from: p.refusedFrom,
  refused_at_ms: p.refusedAtMs,
  round: p.round,
  woken_at_ms: p.wokenAtMs,
  alarmed_at_ms: p.alarmedAtMs,
  pace: p.pace,
})

const columnsOf = (p: EndpointColumns) => ({
  name: p.name,
  origin: p.origin,
  settings: p.settings,
  disabled: p.disabled,
  disabled_at_ms: p.disabledAtMs,
  disabled_by: p.disabledBy,
  ...healthColumnsOf(p),
  sealed_keys: p.sealedKeys,
  queued_to: p.queuedTo,
  first_sequence: p.firstSequence,
  began_at_ms: p.beganAtMs,
  backfill_from: p.backfillFrom,
  backfill_to: p.backfillTo,
  backfill_earlier: p.backfillEarlier,
})

const insertEndpoint = statement<EndpointColumns>()((db, p) => db.insertInto('endpoint').values(columnsOf(p)).returning('id'))

const updateEndpoint = statement<EndpointColumns & { id: number }>()((db, p) =>
  db
    .updateTable('endpoint')
    .set({ ...columnsOf(p), removed_at_ms: null })
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
export function encodeEndpoint(state: EndpointState): EndpointColumns {
  const { endpoint, origin, disabled, disabledSince, health, keys, queuedTo, firstSequence, beganAtMs, backfilled } = state
  return {
    name: endpoint.name,
    origin,
    settings: encodeEndpointSettings(state),
    disabled,
    disabledAtMs: disabledSince?.atMs ?? null,
    disabledBy: disabledSince?.by ?? null,
    ...encodeHealth(health),
    sealedKeys: encodeSealedKeys(keys),
    queuedTo,
    firstSequence,
    beganAtMs,
    backfillFrom: backfilled?.from ?? null,
    backfillTo: backfilled?.to ?? null,
    backfillEarlier: JSON.stringify(backfilled?.earlier ?? []),
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
async function damagedRow(session: Session, name: string): Promise<{ readonly id: number; readonly beganAtMs: number } | null> {
  const [row] = await session.all(named, { name })
  return row === undefined || isReadableEndpoint(row) ? null : { id: row.id, beganAtMs: row.began_at_ms }
}

const updateHealth = statement<HealthColumns & { id: number }>()((db, p) =>
  db.updateTable('endpoint').set(healthColumnsOf(p)).where('id', '=', p.id),
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
