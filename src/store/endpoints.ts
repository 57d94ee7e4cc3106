import type { Endpoint } from '../domain/endpoint.ts'
import type { EndpointState } from '../flow/ports.ts'
import { decodeEndpoint, encodeEndpointSettings } from './codec.ts'
import type { Session } from './engine.ts'
import { statement } from './statement.ts'

const standing = statement()((db) => db.selectFrom('endpoint').selectAll().where('removed_at_ms', 'is', null).orderBy('id'))

interface Columns {
  readonly name: string
  readonly origin: string
  readonly settings: string
  readonly disabled: string | null
  readonly succeededAtMs: number | null
  readonly failingSinceMs: number | null
}
type EndpointColumns = { [Name in keyof Columns]: Columns[Name] }

const insertEndpoint = statement<EndpointColumns>()((db, p) =>
  db
    .insertInto('endpoint')
    .values({
      name: p.name,
      origin: p.origin,
      settings: p.settings,
      disabled: p.disabled,
      succeeded_at_ms: p.succeededAtMs,
      failing_since_ms: p.failingSinceMs,
    })
    .returning('id'),
)

const updateEndpoint = statement<EndpointColumns & { id: number }>()((db, p) =>
  db
    .updateTable('endpoint')
    .set({
      name: p.name,
      origin: p.origin,
      settings: p.settings,
      disabled: p.disabled,
      succeeded_at_ms: p.succeededAtMs,
      failing_since_ms: p.failingSinceMs,
    })
    .where('id', '=', p.id),
)

const markRemoved = statement<{ id: number; nowMs: number }>()((db, p) =>
  db.updateTable('endpoint').set({ removed_at_ms: p.nowMs }).where('id', '=', p.id),
)

export async function listEndpoints(session: Session): Promise<readonly EndpointState[]> {
  return (await session.all(standing, {})).map(decodeEndpoint)
}

/** Returns its id: a new one when it had none. */
export async function saveEndpoint(session: Session, { endpoint, origin, disabled, health }: EndpointState): Promise<Endpoint['id']> {
  const columns = {
    name: endpoint.name,
    origin,
    settings: encodeEndpointSettings(endpoint),
    disabled,
    succeededAtMs: health.lastSuccessAtMs,
    failingSinceMs: health.failingSinceMs,
  }
  if (endpoint.id === '') {
    const [row] = await session.all(insertEndpoint, columns)
    if (row === undefined) throw new Error('an endpoint was inserted and has no id')
    return String(row.id)
  }
  await session.run(updateEndpoint, { ...columns, id: Number(endpoint.id) })
  return endpoint.id
}

export async function removeEndpoint(session: Session, endpointId: string, nowMs: number): Promise<void> {
  await session.run(markRemoved, { id: Number(endpointId), nowMs })
}
