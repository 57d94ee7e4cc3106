import { dispatcherOf, type Role } from '../../../src/core/domain/admin/replica.ts'
import type { Assignment, ReplicaTable, RoleChange, Watermarks } from '../../../src/server/replicas/replica-lease.ts'

/** Holds calls of one kind back until the test lets them go. */
interface Gate {
  readonly waiting: (() => void)[]
  isShut: boolean
}

/** Creates a table of replicas in memory. The table and the replica under test use the same simulated time. */
export function createFakeReplicas({ endpoints = [] as readonly string[] } = {}) {
  const rows = new Map<number, { untilMs: number }>()
  const holders = new Map<Role, number>()
  const gates = { renew: openGate(), changeRoles: openGate() }
  let ids = 0
  let nowMs = 0
  let suspendedMs = 0
  let isAway = false
  let endpointIds = endpoints
  const seen = { server: 1, sequence: 0, endpoints: 0, roles: 0, orders: 0, isMoving: false }

  async function reach(gate: Gate | null): Promise<void> {
    if (isAway) throw new Error('nobody answers')
    if (gate?.isShut === true) await new Promise<void>((resolve) => gate.waiting.push(resolve))
  }
  const remove = (id: number) => {
    rows.delete(id)
    for (const [role, holder] of holders) if (holder === id) holders.delete(role)
    seen.roles += 1
  }
  const table: { -readonly [Verb in keyof ReplicaTable]: ReplicaTable[Verb] } = {
    async register({ ttlMs }) {
      await reach(null)
      ids += 1
      rows.set(ids, { untilMs: nowMs + ttlMs })
      seen.roles += 1
      return { id: ids, nowMs }
    },
    async renew(id, ttlMs) {
      if (isAway) throw new Error('nobody answers')
      const row = rows.get(id)
      const found =
        row === undefined ? null : { nowMs, lapsed: [...rows].filter(([one, { untilMs }]) => one !== id && untilMs <= nowMs).length }
      if (row !== undefined) row.untilMs = nowMs + ttlMs
      // The call takes effect at once, and only its answer is held back.
      await reach(gates.renew)
      return found
    },
    look: async (): Promise<Watermarks> => ({ ...seen }),
    async changeRoles(id, decide) {
      await reach(gates.changeRoles)
      for (const [one, { untilMs }] of rows) if (untilMs <= nowMs) remove(one)
      const { take, giveUp } = decide(assignment())
      for (const role of giveUp) holders.delete(role)
      for (const role of take) holders.set(role, id)
      if (take.length + giveUp.length > 0) seen.roles += 1
      return [...holders].filter(([, holder]) => holder === id).map(([role]) => role)
    },
    async configure() {
      await reach(null)
      return nowMs
    },
    list: async () => [],
    async remove(id) {
      await reach(null)
      remove(id)
    },
    close: async () => undefined,
  }
  const assignment = (): Assignment => ({
    live: [...rows.keys()],
    holders: new Map(holders),
    roles: ['poller', 'janitor', ...endpointIds.map(dispatcherOf)],
  })
  return {
    table,
    holders,
    clock: { monotonic: () => nowMs - suspendedMs, now: () => nowMs },
    seen: (): Watermarks => ({ ...seen }),
    pass(ms: number) {
      nowMs += ms
    },
    /** Suspends the replica's machine: time passes, but its monotonic clock stands still. */
    suspend(ms: number) {
      nowMs += ms
      suspendedMs += ms
    },
    setAway(away: boolean) {
      isAway = away
    },
    /** Another replica joins. */
    join(ttlMs = 5000) {
      ids += 1
      rows.set(ids, { untilMs: nowMs + ttlMs })
      seen.roles += 1
      return ids
    },
    /** Another replica changes its roles. */
    change(id: number, decide: (given: Assignment) => RoleChange) {
      const { take, giveUp } = decide(assignment())
      for (const role of giveUp) holders.delete(role)
      for (const role of take) holders.set(role, id)
      seen.roles += 1
    },
    declareDead: remove,
    setEndpoints(next: readonly string[]) {
      endpointIds = next
      seen.endpoints += 1
    },
    shut(kind: keyof typeof gates) {
      gates[kind].isShut = true
    },
    letGo(kind: keyof typeof gates) {
      gates[kind].isShut = false
      for (const go of gates[kind].waiting.splice(0)) go()
    },
  }
}

function openGate(): Gate {
  return { waiting: [], isShut: false }
}
