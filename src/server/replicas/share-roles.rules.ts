import { endpointOf, type Role } from '../../core/domain/admin/replica.ts'

export interface Assignment {
  /** The ids of the live replicas. */
  readonly live: readonly number[]
  /** The ids of the replicas that have the roles. A role is absent if no replica has it. */
  readonly holders: ReadonlyMap<Role, number>
  readonly roles: readonly Role[]
  /** The ids of the live replicas that can have a role, in the order of `live`. A role is absent if all of them can have it. */
  readonly only?: ReadonlyMap<Role, readonly number[]>
}

/** The roles that one replica should take and give up. */
export interface RoleChange {
  readonly take: readonly Role[]
  readonly giveUp: readonly Role[]
}

/**
 * Shares the roles evenly among the live replicas. Two replicas differ by at most one in the number of their dispatcher roles, and by at most one in
 * the number of their other roles. A role that only some replicas can have is shared among these.
 *
 * No role moves without need: a replica with more roles than its share gives up the excess, and a replica with fewer takes free roles. A replica also
 * gives up roles that no longer exist, or that it can no longer have.
 */
export function shareRoles({ live, holders, roles, only }: Assignment, me: number): RoleChange {
  const wanted = new Set(roles)
  const gone = [...holders].filter(([role, holder]) => holder === me && !wanted.has(role)).map(([role]) => role)
  const candidatesOf = (role: Role) => only?.get(role) ?? live
  const kinds = Map.groupBy(roles, (role) => `${endpointOf(role) === null} ${candidatesOf(role).join()}`)
  const changes = [...kinds.values()].map((kind) => {
    const [first] = kind
    return shareEvenly({ live: first === undefined ? live : candidatesOf(first), holders, roles: kind }, me)
  })
  return { take: changes.flatMap(({ take }) => take), giveUp: [...gone, ...changes.flatMap(({ giveUp }) => giveUp)] }
}

function shareEvenly(assignment: Assignment, me: number): RoleChange {
  const { holders, roles } = assignment
  const share = shareOf(assignment, me)
  const mine = roles.filter((role) => holders.get(role) === me)
  const free = roles.filter((role) => !holders.has(role))
  return { take: free.slice(0, Math.max(0, share - mine.length)), giveUp: mine.slice(share) }
}

/** Returns how many roles a replica may have. If no even share is possible, the replicas with the most roles get one more, so that few roles move. */
function shareOf({ live, holders, roles }: Assignment, me: number): number {
  const counts = new Map(live.map((id) => [id, 0]))
  for (const role of roles) {
    const holder = holders.get(role)
    const count = holder === undefined ? undefined : counts.get(holder)
    if (holder !== undefined && count !== undefined) counts.set(holder, count + 1)
  }
  const order = [...counts].sort(([a, ofOne], [b, ofOther]) => ofOther - ofOne || a - b).map(([id]) => id)
  const index = order.indexOf(me)
  if (index === -1) return 0
  return Math.floor(roles.length / order.length) + (index < roles.length % order.length ? 1 : 0)
}
