import { sql } from 'kysely'
import type { Subscriber } from '../../../core/domain/history/snapshot.ts'
import { decodeEndpoint, isReadableEndpoint } from '../../../core/store/codec.ts'
import type { Session } from '../../../core/store/engine.ts'
import type { Tables } from '../../../core/store/schema.ts'
import { rawStatement } from '../raw-statement.ts'
import { type Standing, standingColumns } from '../standing.ts'

/** The endpoints that decide which deliveries a batch queues, and their version. `standing`: the state of the server at the last check. */
export interface Subscribers {
  readonly standing: Standing
  readonly version: number
  readonly endpoints: readonly Subscriber[]
}

type EndpointRow = { readonly [Column in keyof Parameters<typeof decodeEndpoint>[0]]: Parameters<typeof decodeEndpoint>[0][Column] }

const sinceVersion = rawStatement<{ known: number }>()(
  (p) => sql<EndpointRow & Pick<Tables['counter'], 'version'> & Standing>`
    select counter.version, ${standingColumns}, endpoint.* from counter
    left join endpoint on endpoint.removed_at_ms is null and counter.version <> ${p.known}::bigint
    where counter.name = 'sequence' order by endpoint.id`,
)

/** Reads the version of the endpoints, and the endpoints themselves only if they have changed since `known`. */
export async function readSubscribers(session: Session, known: Subscribers | null): Promise<Subscribers> {
  const rows = await session.all(sinceVersion, { known: known?.version ?? -1 })
  const [first] = rows
  if (first === undefined) throw new Error('the counter of the store is gone')
  const { version, server, sequence } = first
  const standing = { server, sequence }
  if (known !== null && version === known.version) return { ...known, standing }
  return { version, standing, endpoints: rows.flatMap((row) => (row.id === null || !isReadableEndpoint(row) ? [] : [decodeEndpoint(row)])) }
}
