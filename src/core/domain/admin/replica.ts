import { z } from 'zod'
import { bounded, CONCERN_KINDS, type Concern } from '../../../console/problems/concern.ts'
import { parseStored } from '../json-body.ts'

/** Work that only one replica may do at a time. The replica with the dispatcher role of an endpoint delivers to it. */
export type Role = 'poller' | 'janitor' | `dispatcher/${string}`

const DISPATCHER = 'dispatcher/'

export function dispatcherOf(endpointId: string): Role {
  return `${DISPATCHER}${endpointId}`
}

/** Returns the id of the endpoint of a dispatcher role; null: it is another role. */
export function endpointOf(role: Role): string | null {
  return role.startsWith(DISPATCHER) ? role.slice(DISPATCHER.length) : null
}

/** One of the relays that share a store. */
export interface Replica {
  /** A replica gets a new id at each start, and also when it comes back after it was declared dead. */
  readonly id: number
  /** The name of its host and its process id. */
  readonly name: string
  readonly version: string
  /** A hash of the settings. Replicas with the same settings have the same fingerprint. The settings `listen` and `log` do not count. */
  readonly configFingerprint: string
  /** The names of its at-rest keys; empty: it uses a key file. */
  readonly atRestKeys: readonly string[]
  readonly startedAtMs: number
  readonly lastSeenAtMs: number
  readonly roles: readonly Role[]
  /** What is wrong at this replica and only it can know. Empty if its lease is over. */
  readonly concerns: readonly Concern[]
}

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

const concern = z.object({
  kind: z.enum(CONCERN_KINDS),
  endpoint: z.string().nullable(),
  replica: z.null(),
  title: z.string(),
  sinceMs: z.number().nullable(),
  evidence: z.array(z.string()),
  todo: z.array(z.string()),
})

/** Decodes what a replica has told. Leaves out what it does not know, because another version may have told it. */
export function decodeConcerns(json: string | null): readonly Concern[] {
  const told = json === null ? [] : parseStored(json)
  return bounded(Array.isArray(told) ? told.flatMap((one) => concern.safeParse(one).data ?? []) : [])
}

/** What other replicas learn about a replica's config. */
export interface ReplicaConfig {
  readonly configFingerprint: string
  /** The names of endpoints. */
  readonly endpoints: readonly string[]
  /** The names of the keys at rest; the first key encrypts, all keys decrypt. */
  readonly atRestKeys: readonly string[]
}
