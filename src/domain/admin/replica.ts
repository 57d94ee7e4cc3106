/** Work that only one replica may do at a time. The replica with the dispatcher role of an endpoint delivers to it. */
export type Role = 'poller' | 'janitor' | `dispatcher/${string}`

const DISPATCHER = 'dispatcher/'

export function dispatcherOf(endpointId: string): Role {
  return `${DISPATCHER}${endpointId}`
}

/** The endpoint of a dispatcher role; null: it is another role. */
export function endpointOf(role: Role): string | null {
  return role.startsWith(DISPATCHER) ? role.slice(DISPATCHER.length) : null
}

/** One of the relays that share a store. */
export interface Replica {
  /** Given at each start. A replica that was declared dead comes back under a new id. */
  readonly id: number
  /** Host and process. */
  readonly name: string
  readonly version: string
  /** Replicas with equal settings have equal fingerprints. Their listeners and their log do not count. */
  readonly configFingerprint: string
  /** The names of its at-rest keys; empty: it has a key file. */
  readonly atRestKeys: readonly string[]
  readonly startedAtMs: number
  readonly lastSeenAtMs: number
  readonly roles: readonly Role[]
}

/** Who holds which role at one moment. */
export interface Assignment {
  /** The ids of the live replicas. */
  readonly live: readonly number[]
  /** The holder of each role that is held. */
  readonly holders: ReadonlyMap<Role, number>
  /** Every role there is. */
  readonly roles: readonly Role[]
  /** If only some of the live replicas can play a role: which, in the order of `live`. */
  readonly only?: ReadonlyMap<Role, readonly number[]>
}

/** The roles that one replica should take and give up. */
export interface RoleChange {
  readonly take: readonly Role[]
  readonly giveUp: readonly Role[]
}

/**
 * Shares the roles so that no live replica has two endpoints more than another, and likewise for the other roles. A role that only some
 * replicas can play is shared among those.
 *
 * No role moves without need: a replica with more than its share gives up the excess, and a replica with less takes what is free. A replica
 * also gives up roles that no longer exist, and roles that it can no longer play.
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

/** How many roles a replica may have. If they do not divide evenly, the replicas with the most keep one more. */
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
