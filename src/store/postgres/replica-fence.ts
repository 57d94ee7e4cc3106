import { sql } from 'kysely'
import { StorageFailure } from '../../domain/errors.ts'
import type { Session } from '../engine.ts'
import { rawStatement } from './raw-statement.ts'

const prove = rawStatement<{ id: number }>()((p) => sql<{ id: number }>`select id from replica where id = ${p.id}::bigint for key share`)

/**
 * Fails if this replica has been declared dead. Otherwise it cannot be before the transaction has ended, because whoever deletes its row waits for
 * this lock; a renewal does not.
 */
export async function proveAlive(session: Session, replicaId: number): Promise<void> {
  const rows = await session.all(prove, { id: replicaId })
  if (rows.length === 0) throw new StorageFailure('this replica was declared dead, and others do what it did')
}

/** The names that a replica's row holds as JSON. */
export function namesIn(json: string): readonly string[] {
  const names: unknown = JSON.parse(json)
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}
