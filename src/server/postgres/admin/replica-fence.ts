import { sql } from 'kysely'
import { StorageFailure } from '../../../core/domain/errors.ts'
import { parseStored } from '../../../core/domain/json-body.ts'
import type { Session } from '../../../core/store/engine.ts'
import { rawStatement } from '../raw-statement.ts'
import { type LostCommits, type ReplicaStanding, replicaStanding, type Timeline } from './lost-commits.ts'

const proveAlive = rawStatement<{ id: number }>()(
  (p) => sql<ReplicaStanding>`
    select ${replicaStanding} from replica join counter on counter.name = 'sequence'
    where replica.id = ${p.id}::bigint for key share of replica`,
)
const proveRole = rawStatement<{ id: number; role: string }>()(
  (p) => sql<ReplicaStanding>`
    select ${replicaStanding} from replica join role on role.replica_id = replica.id join counter on counter.name = 'sequence'
    where replica.id = ${p.id}::bigint and role.name = ${p.role}::text for key share of replica`,
)

export interface Proof {
  readonly replicaId: number
  /** `any`: no role is checked. */
  readonly role: 'poller' | 'janitor' | 'any'
  readonly lostCommits: LostCommits
  readonly timeline: () => Promise<Timeline>
}

/**
 * Fails if this replica was declared dead or does not hold the role, or if the server has lost commits. Otherwise it locks the replica's row. To
 * declare the replica dead, another replica has to delete that row, and so waits until the transaction ends. Renewing the lease does not wait.
 */
export async function proveHeld(session: Session, { replicaId, role, lostCommits, timeline }: Proof): Promise<void> {
  const hasLost = lostCommits.asking(replicaId)
  const [found] = await (role === 'any' ? session.all(proveAlive, { id: replicaId }) : session.all(proveRole, { id: replicaId, role }))
  if (found === undefined) throw new StorageFailure('this replica was declared dead, and others have its roles')
  if (await hasLost(found, timeline)) throw new StorageFailure('the server has lost commits: other replicas may have the roles of this one')
}

/** Parses a list of names that a replica's row stores as JSON. */
export function namesIn(json: string): readonly string[] {
  const names = parseStored(json)
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}
