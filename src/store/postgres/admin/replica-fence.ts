import { sql } from 'kysely'
import { StorageFailure } from '../../../domain/errors.ts'
import type { Session } from '../../engine.ts'
import { rawStatement } from '../raw-statement.ts'

const proveAlive = rawStatement<{ id: number }>()(
  (p) => sql<{ id: number }>`select id from replica where id = ${p.id}::bigint for key share`,
)
const proveRole = rawStatement<{ id: number; role: string }>()(
  (p) => sql<{ id: number }>`
    select replica.id from replica join role on role.replica_id = replica.id
    where replica.id = ${p.id}::bigint and role.name = ${p.role}::text for key share of replica`,
)

/**
 * Fails if this replica has been declared dead, or does not hold the role; with `any`, no role is checked. Otherwise it cannot be declared dead before the
 * transaction has ended, because deleting its row waits for this lock; renewing it does not.
 */
export async function proveHeld(session: Session, replicaId: number, role: 'poller' | 'janitor' | 'any'): Promise<void> {
  const rows = await (role === 'any' ? session.all(proveAlive, { id: replicaId }) : session.all(proveRole, { id: replicaId, role }))
  if (rows.length === 0) throw new StorageFailure('this replica was declared dead, and others do what it did')
}

/** The names that a replica's row holds as JSON. */
export function namesIn(json: string): readonly string[] {
  const names: unknown = JSON.parse(json)
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}
