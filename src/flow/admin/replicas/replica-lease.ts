import type { Clock, Log } from '../../ports.ts'
import type { ReplicaConfig, ReplicaTable, TimeSample } from '../ports.ts'

const DECLARED_DEAD = 'this replica counts as dead, because it was not seen for a while or the database has lost commits; it joins again'

/** Why a lease ran out, for the log: this process did nothing for so long, or the last renewal failed. */
export type LapseReason = { readonly stoodStillMs: number } | { readonly err: unknown }

/** Proof that this relay lives, which it renews. */
export interface ReplicaLease {
  /** The id of this replica in the store. */
  id(): number
  /** Rises when this replica finds out that it was declared dead. */
  term(): number
  /** Whether nobody else can have taken over what this replica holds, by its own clocks. */
  isValid(): boolean
  /** How long it still lasts, in milliseconds. */
  leftMs(): number
  /** Aborted when it runs out. */
  signal(): AbortSignal
  /** Renews it. Never rejects: without an answer it runs out. */
  renew(): Promise<void>
  /** Notices that it has run out; to be called often. */
  check(): void
  configure(config: ReplicaConfig): Promise<void>
}

export interface ReplicaLeasePorts {
  readonly table: Pick<ReplicaTable, 'register' | 'renew' | 'configure'>
  readonly clock: Clock
  readonly log: Log
  /** Called with the time of the store, and with when it was asked for and known, monotonic milliseconds. */
  readonly onServerTime: (sample: TimeSample) => void
  /** Other replicas are no longer seen. */
  readonly onOthersLapsed: () => void
  /** It has run out. */
  readonly onLapsed: (why: LapseReason) => void
  /** This replica was declared dead and holds nothing. Called before it joins again, since under its new number it may write. */
  readonly onLost: () => void
}

export interface ReplicaLeaseOptions {
  readonly name: string
  readonly version: string
  /** How long a replica counts as alive after its last renewal, in milliseconds. */
  readonly ttlMs: number
}

/** Registers this relay among the replicas. Rejects if the store fails. */
export async function openReplicaLease(
  ports: ReplicaLeasePorts,
  options: ReplicaLeaseOptions,
  first: ReplicaConfig,
): Promise<ReplicaLease> {
  const { table, clock, log } = ports
  const { ttlMs } = options
  let failure: unknown = null
  let isAway = false
  const validity = createValidity(clock, (stoodStillMs) =>
    ports.onLapsed(stoodStillMs > ttlMs / 2 ? { stoodStillMs } : { err: failure ?? new Error('the store has not answered yet') }),
  )
  let config = first
  let id = 0
  let term = 0
  let configuredAtMs: number | null = null

  async function timed<T extends { readonly nowMs: number } | null>(ask: () => Promise<T>): Promise<T> {
    const asked = momentOf(clock)
    const answer = await ask()
    if (answer === null) return answer
    ports.onServerTime({ serverMs: answer.nowMs, askedMs: asked.monotonicMs, heardMs: clock.monotonic() })
    // Counted from before it was sent: it never ends later here than in the store.
    validity.lasts(ttlMs, asked)
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
    term: () => term,
    async renew() {
      // Before the answer, because the answer may be late.
      validity.check()
      try {
        const renewed = await timed(() => table.renew(id, ttlMs))
        if (renewed === null) {
          failure ??= new Error('it counts as dead')
          validity.lasts(0, momentOf(clock))
          validity.check()
          log.warn({ replica: id }, DECLARED_DEAD)
          term += 1
          ports.onLost()
          await register()
        } else if (renewed.lapsed > 0) ports.onOthersLapsed()
      } catch (err) {
        log[isAway ? 'debug' : 'warn']({ err }, 'the lease of this replica could not be renewed; it tries again every second')
        isAway = true
        failure = err
      }
      validity.check()
    },
    async configure(next) {
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
 * By whichever clock has gone further: the monotonic one stands still while the machine is suspended, and the other may be put back. One that is put forward
 * ends a lease until the next renewal.
 */
function elapsedMs(from: Moment, to: Moment): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs)
}

/** How long a lease lasts. */
function createValidity(clock: Clock, onLapsed: (uncheckedMs: number) => void) {
  let checkedAt = momentOf(clock)
  let since = checkedAt
  let lastsMs = Number.NEGATIVE_INFINITY
  let hasLapsed = false
  let controller = new AbortController()
  const leftMs = () => lastsMs - elapsedMs(since, momentOf(clock))
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
    isValid: () => leftMs() > 0,
    signal() {
      // Whoever asks may be the first to run after a pause.
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
