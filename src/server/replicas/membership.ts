import { dispatcherOf, endpointOf, type Replica, type ReplicaConfig, type Role } from '../../core/domain/admin/replica.ts'
import type { Reads, Relay } from '../../core/flow/relay-part.ts'
import type { Membership } from '../../core/wiring/replica-name.ts'
import {
  type LapseReason,
  openReplicaLease,
  type ReplicaLease,
  type ReplicaLeaseOptions,
  type ReplicaLeasePorts,
  type ReplicaTable,
  shareRoles,
  type Watermarks,
} from './replica-lease.ts'

/** Begins and ends the work that a replica does because it holds a role. */
export interface Duties {
  /** Called when the replica has taken roles, or holds them again after its lease had run out. No work of these roles is under way then. */
  taken(roles: readonly Role[]): void
  /** Resolves when all work of the role has ended. No new work begins, because `Membership.holds` is false by then. */
  giveUp(role: Role): Promise<void>
  /** Called when the lease has run out. Ends the work of all roles at once. */
  lapsed(): void
}

/** A membership with the verbs that keep it up to date. Before you call a verb again, wait until its last call has ended. */
export interface DrivenMembership extends Membership, Pick<ReplicaLease, 'renew' | 'check' | 'isValid'> {
  start(duties: Duties): void
  /** Takes and gives up roles if anything has changed. `seen` null: the store could not be read. Never rejects. */
  share(seen: Watermarks | null): Promise<void>
  /** Leaves at once, so that the others need not wait for the lease to run out. */
  leave(): Promise<void>
}

export interface MembershipPorts extends Pick<ReplicaLeasePorts, 'clock' | 'log' | 'onServerTime'> {
  readonly table: ReplicaTable
}

/** Joins the replicas that share a store. Rejects if the store fails. */
export async function joinReplicas(ports: MembershipPorts, options: ReplicaLeaseOptions, config: ReplicaConfig): Promise<DrivenMembership> {
  const { table } = ports
  const roles = createHeldRoles(ports)
  const lease = await openReplicaLease(
    { ...ports, onLapsed: roles.lapsed, onLost: roles.lost, onOthersLapsed: roles.changed },
    options,
    config,
  )
  const holds = (role: Role) => roles.has(role) && lease.isValid()
  return {
    ...lease,
    holds,
    delivers: (endpointId) => holds(dispatcherOf(endpointId)),
    endpoints: () => (lease.isValid() ? roles.list().flatMap((role) => endpointOf(role) ?? []) : []),
    list: table.list,
    count: roles.replicas,
    start: roles.start,
    share: async (seen) => (lease.isValid() ? await roles.share(seen, lease.id()) : undefined),
    async leave() {
      roles.lost()
      await table.remove(lease.id())
    },
  }
}

/** Keeps the roles of this replica. It holds a role as soon as the store says so, and gives the role up only when the role's work has ended. */
function createHeldRoles({ table, log }: Pick<Relay, 'log'> & { readonly table: Pick<ReplicaTable, 'changeRoles'> }) {
  let duties: Duties | null = null
  let held: ReadonlySet<Role> = new Set()
  let shared: Watermarks | null = null
  let isShareDue = true
  let replicas = 1
  /** How often all roles were lost. */
  let losses = 0
  /** How often the lease has run out. */
  let lapses = 0
  /** The value of `lapses` when the last change of roles began. */
  let resumed = 0
  const leaving = createLeaving(() => {
    isShareDue = true
  })

  async function change(id: number, to: Duties): Promise<void> {
    const asOf = losses
    const lapsesBefore = lapses
    const ended = leaving.ended()
    let excess: readonly Role[] = []
    const roles = await table.changeRoles(id, (assignment) => {
      const wanted = shareRoles(assignment, id)
      excess = wanted.giveUp
      replicas = assignment.live.length
      return { take: wanted.take, giveUp: ended }
    })
    if (losses !== asOf) return
    // If the lease has run out since the last change, the work of all roles was ended. So every role counts as new, and its work begins again.
    const before: ReadonlySet<Role> = resumed === lapsesBefore ? held : new Set()
    resumed = lapsesBefore
    held = new Set(roles)
    leaving.forget(ended)
    for (const role of excess) if (held.has(role) && !leaving.has(role)) leaving.add(role, to.giveUp(role))
    const taken = roles.filter((role) => !before.has(role) && !leaving.has(role))
    if (taken.length > 0 || roles.length < before.size) log.info({ replica: id, roles }, 'the roles of this replica have changed')
    if (taken.length > 0) to.taken(taken)
  }

  return {
    has: (role: Role) => held.has(role) && !leaving.has(role),
    list: (): readonly Role[] => [...held].filter((role) => !leaving.has(role)),
    replicas: () => replicas,
    start(given: Duties) {
      duties = given
    },
    async share(seen: Watermarks | null, id: number) {
      const isSame = seen === null || (shared?.roles === seen.roles && shared.endpoints === seen.endpoints)
      if (duties === null || (isSame && !isShareDue)) return
      isShareDue = false
      try {
        await change(id, duties)
        shared = seen ?? shared
      } catch (err) {
        isShareDue = true
        log.debug({ err }, 'roles could not be shared; the replica tries again')
      }
    },
    /** Makes the next `share` look at the roles, because other replicas may have come or gone. */
    changed() {
      isShareDue = true
    },
    lapsed(why: LapseReason) {
      lapses += 1
      isShareDue = true
      if (held.size > 0) log.warn(why, 'the lease of this replica has run out: it stops everything that only one replica may do')
      duties?.lapsed()
    },
    lost() {
      losses += 1
      held = new Set()
      leaving.clear()
      isShareDue = true
    },
  }
}

/** The roles that this replica is giving up. It begins no work for them. Other replicas may take a role only when its work here has ended. */
function createLeaving(onEnded: () => void) {
  const leaving = new Map<Role, { hasEnded: boolean }>()
  return {
    has: (role: Role) => leaving.has(role),
    ended: (): readonly Role[] => [...leaving].filter(([, { hasEnded }]) => hasEnded).map(([role]) => role),
    add(role: Role, work: Promise<void>): void {
      const one = { hasEnded: false }
      leaving.set(role, one)
      const end = () => {
        one.hasEnded = true
        onEnded()
      }
      work.then(end, end)
    },
    forget(roles: readonly Role[]): void {
      for (const role of roles) leaving.delete(role)
    },
    clear: () => leaving.clear(),
  }
}

/** Called when a replica, this one included, has changed something in the shared store. */
export interface ReplicaChangeListener {
  /** The feed has grown. */
  committed(): void
  /** The waiting deliveries, or the endpoints themselves, have changed. */
  reordered(): void
  /** A replica has come or gone, or its config has changed. */
  replicasChanged(): void
  /** Another replica is moving the store. */
  moving(): void
  /** The server may have lost data that this replica has already read. */
  setBack(): void
}

interface ReplicaChangesPorts {
  readonly table: Pick<ReplicaTable, 'look'>
  readonly membership: Pick<DrivenMembership, 'share'>
  readonly listener: ReplicaChangeListener
}

/**
 * Creates a function that looks at the store and notifies the listener of changes since its last call. The function also starts to
 * distribute the roles among the replicas. It does not wait for that, because another replica may need time to give up a role.
 */
export function createReplicaChanges({ table, membership, listener }: ReplicaChangesPorts): () => Promise<void> {
  let before: Watermarks | null = null
  let isSharing = false
  const shareOnce = async (seen: Watermarks | null) => {
    if (isSharing) return
    isSharing = true
    await membership.share(seen)
    isSharing = false
  }
  return async () => {
    const seen = await table.look().catch(() => null)
    void shareOnce(seen)
    if (seen === null) return
    notify(before, seen, listener)
    before = seen
  }
}

/** `before` null: this is the first look. */
function notify(before: Watermarks | null, seen: Watermarks, listener: ReplicaChangeListener): void {
  if (seen.isMoving && before?.isMoving !== true) listener.moving()
  if (before === null) return
  // If a number is lower than before, anything may have changed.
  const isSetBack = seen.server !== before.server || isLower(seen, before)
  if (isSetBack) listener.setBack()
  if (isSetBack || seen.sequence > before.sequence) listener.committed()
  if (isSetBack || seen.orders > before.orders || seen.endpoints > before.endpoints) listener.reordered()
  if (isSetBack || seen.roles > before.roles) listener.replicasChanged()
}

function isLower(seen: Watermarks, before: Watermarks): boolean {
  return seen.sequence < before.sequence || seen.orders < before.orders || seen.endpoints < before.endpoints || seen.roles < before.roles
}

/** The membership of a relay that does not share its store: it holds every role. */
export function createSoleMembership(
  { reads, clock }: Reads<'listEndpoints'> & { readonly clock: { now(): number } },
  { name, version }: { readonly name: string; readonly version: string },
  first: ReplicaConfig,
): Membership {
  let config = first
  const never = new AbortController().signal
  const startedAtMs = clock.now()
  return {
    id: () => 1,
    holds: () => true,
    endpoints: () => null,
    delivers: () => true,
    term: () => 0,
    signal: () => never,
    count: () => 1,
    async list(): Promise<readonly Replica[]> {
      const endpoints = await reads.listEndpoints()
      const { configFingerprint, atRestKeys } = config
      const roles = ['poller', 'janitor', ...endpoints.map(({ endpoint }) => dispatcherOf(endpoint.id))] as const
      return [{ id: 1, name, version, configFingerprint, atRestKeys, startedAtMs, lastSeenAtMs: clock.now(), roles, concerns: [] }]
    },
    async configure(next) {
      config = next
    },
    tell: () => undefined,
  }
}
