import type { Concern } from '../../console/problems/concern-kinds.ts'
import { endpointOf, type Replica, type ReplicaConfig, type Role } from '../../core/domain/admin/replica.ts'
import type { Clock } from '../../core/flow/ports.ts'
import type { Relay } from '../../core/flow/relay-part.ts'

/** `serverMs`: the server's clock, epoch milliseconds. `askedMs`, `heardMs`: our monotonic clock at the request and at the answer. */
export interface TimeSample {
  readonly serverMs: number
  readonly askedMs: number
  readonly heardMs: number
}

/** Counters that rise with the commits of all replicas. */
export interface Watermarks {
  /** When the database server was started. If this changes, the server was restarted or replaced and may have lost commits. */
  readonly server: number
  /** The last sequence of the feed. */
  readonly sequence: number
  /** Counts changes of endpoints. */
  readonly endpoints: number
  /** Counts changes of replicas and roles. */
  readonly roles: number
  /** Counts changes of the waiting deliveries by operators, jobs and joins of parcels. */
  readonly orders: number
  /** Whether nobody may write, because the store was moved or is about to be. */
  readonly isMoving: boolean
}

interface NewReplica extends ReplicaConfig {
  readonly name: string
  readonly version: string
  readonly ttlMs: number
  /** When the replica's config took effect, if the replica joins again under a new id; null: the config takes effect now. */
  readonly configuredAtMs: number | null
}

/** The replicas that share a store, and the roles they hold. Times are epoch milliseconds of the store's clock. */
export interface ReplicaTable {
  /** Adds a replica with a lease of `ttlMs`. Rejects if this replica and another live one could not decrypt each other's secrets. */
  register(replica: NewReplica): Promise<{ readonly id: number; readonly nowMs: number }>
  /**
   * Renews a lease. `lapsed`: how many leases of other replicas have run out. Null: this replica was declared dead, or the server has lost
   * the commit that registered it. The same statement stores the concerns, which the other replicas read with `list`.
   */
  renew(id: number, ttlMs: number, concerns: readonly Concern[]): Promise<{ readonly nowMs: number; readonly lapsed: number } | null>
  look(): Promise<Watermarks>
  /**
   * First declares replicas dead whose leases have run out. Then `decide` changes the roles of the replica `id`, while nobody else can change
   * roles. Resolves with the new roles of `id`.
   */
  changeRoles(id: number, decide: (assignment: Assignment) => RoleChange): Promise<readonly Role[]>
  /** Saves a new config. Resolves with the time at which the config took effect; null: the replica was declared dead. Rejects like `register`. */
  configure(id: number, config: ReplicaConfig): Promise<number | null>
  list(): Promise<readonly Replica[]>
  /** Removes a replica that stops. Other replicas may then take its roles. */
  remove(id: number): Promise<void>
  close(): Promise<void>
}

const DECLARED_DEAD = 'this replica counts as dead, because it was not seen for a while or the database has lost commits; it joins again'

/** Why a lease has run out, for the log: this process stood still for a time, or the last renewal failed with an error. */
export type LapseReason = { readonly stoodStillMs: number } | { readonly err: unknown }

export interface ReplicaLeasePorts extends Pick<Relay, 'clock' | 'log'> {
  readonly table: Pick<ReplicaTable, 'register' | 'renew' | 'configure'>
  /** Called with each server time that the store has reported. */
  readonly onServerTime: (sample: TimeSample) => void
  readonly onOthersLapsed: () => void
  readonly onLapsed: (why: LapseReason) => void
  /** Called when this replica was declared dead. It then joins again under a new id, without roles. */
  readonly onLost: () => void
}

export interface ReplicaLeaseOptions {
  readonly name: string
  readonly version: string
  /** How long a replica counts as alive after its last renewal, in milliseconds. */
  readonly ttlMs: number
}

/** The lease of this replica. While it lasts, the other replicas treat this one as alive. */
export type ReplicaLease = Awaited<ReturnType<typeof openReplicaLease>>

/** Registers this relay as a replica. Rejects if the store fails. */
export async function openReplicaLease(ports: ReplicaLeasePorts, options: ReplicaLeaseOptions, first: ReplicaConfig) {
  const { table, clock, log } = ports
  const { ttlMs } = options
  let failure: unknown = null
  let isAway = false
  const { lasts, ...validity } = createValidity(clock, (stoodStillMs) =>
    ports.onLapsed(stoodStillMs > ttlMs / 2 ? { stoodStillMs } : { err: failure ?? new Error('the store has not answered yet') }),
  )
  let config = first
  let id = 0
  let term = 0
  let configuredAtMs: number | null = null
  let concerns: () => readonly Concern[] = () => []

  async function timed<T extends { readonly nowMs: number } | null>(ask: () => Promise<T>): Promise<T> {
    const asked = momentOf(clock)
    const answer = await ask()
    if (answer === null) return answer
    ports.onServerTime({ serverMs: answer.nowMs, askedMs: asked.monotonicMs, heardMs: clock.monotonic() })
    // Count from before the request was sent, so that the lease never ends later here than in the store.
    lasts(ttlMs, asked)
    if (isAway) log.info({ replica: id }, 'the database answers again')
    isAway = false
    failure = null
    return answer
  }

  const register = async () => {
    const { name, version } = options
    const joined = await timed(() => table.register({ ...config, name, version, ttlMs, configuredAtMs }))
    id = joined.id
    configuredAtMs ??= joined.nowMs
  }

  await register()
  return {
    ...validity,
    id: () => id,
    /** Rises when this replica learns that it was declared dead. */
    term: () => term,
    /** Renews the lease. Never rejects. If the store does not answer, the lease runs out. */
    async renew() {
      // Check now, because the lease may run out before the store answers.
      validity.check()
      try {
        const renewed = await timed(() => table.renew(id, ttlMs, concerns()))
        if (renewed === null) {
          failure ??= new Error('this replica counts as dead')
          lasts(0, momentOf(clock))
          validity.check()
          log.warn({ replica: id }, DECLARED_DEAD)
          term += 1
          ports.onLost()
          await register()
        } else if (renewed.lapsed > 0) ports.onOthersLapsed()
      } catch (err) {
        log[isAway ? 'debug' : 'warn']({ err }, 'the lease of this replica could not be renewed; the replica tries again every second')
        isAway = true
        failure = err
      }
      validity.check()
    },
    /** From now on each renewal tells the other replicas these concerns. */
    tell(next: typeof concerns) {
      concerns = next
    },
    async configure(next: ReplicaConfig) {
      config = next
      configuredAtMs = (await table.configure(id, next)) ?? configuredAtMs
    },
  }
}

interface Moment {
  readonly monotonicMs: number
  readonly wallMs: number
}

function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonic(), wallMs: clock.now() }
}

/**
 * Returns the time between two moments, by the clock that has gone further. The monotonic clock stands still while the machine is
 * suspended, and the wall clock may be put back. If the wall clock is put forward, the lease seems to have run out until it is renewed.
 */
function elapsedMs(from: Moment, to: Moment): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs)
}

/** Keeps how long the lease lasts. `onLapsed` gets the time since the last check, in milliseconds. */
function createValidity(clock: Clock, onLapsed: (uncheckedMs: number) => void) {
  let checkedAt = momentOf(clock)
  let since = checkedAt
  let lastsMs = Number.NEGATIVE_INFINITY
  let hasLapsed = false
  let controller = new AbortController()
  const leftMs = () => lastsMs - elapsedMs(since, momentOf(clock))
  /** Notices that the lease has run out. Call it often. */
  function check(): void {
    const now = momentOf(clock)
    const uncheckedMs = Math.round(elapsedMs(checkedAt, now))
    checkedAt = now
    if (hasLapsed || leftMs() > 0) return
    hasLapsed = true
    controller.abort()
    onLapsed(uncheckedMs)
  }
  return {
    leftMs,
    check,
    /** Whether the lease still lasts by this replica's clocks. While it lasts, no other replica can have taken its roles. */
    isValid: () => leftMs() > 0,
    /** Returns a signal that is aborted when the lease runs out. */
    signal() {
      // After a pause of the process this may be the first code that runs.
      check()
      return controller.signal
    },
    lasts(ms: number, from: Moment): void {
      lastsMs = ms
      since = from
      if (!hasLapsed || leftMs() <= 0) return
      hasLapsed = false
      controller = new AbortController()
    },
  }
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
