import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWriteSide } from '../../src/assembly/open-write-side.ts'
import type { RecordRules } from '../../src/core/domain/history/recording.ts'
import type { IncomingPush } from '../../src/core/domain/ingest/inbox.ts'
import { parsePush } from '../../src/core/domain/ingest/parse-push.ts'
import type { CadencePolicy } from '../../src/core/domain/polling/cadence.ts'
import type { PushHealth } from '../../src/core/domain/polling/push-health.ts'
import { createCarrierModelKeeper } from '../../src/core/flow/polling/carrier-model.ts'
import { openModelCheckpoint } from '../../src/core/flow/polling/model-checkpoint.ts'
import { createPoller, createPollsUnderWay } from '../../src/core/flow/polling/poller.ts'
import { createRefresh } from '../../src/core/flow/polling/refresh.ts'
import type { WriteSide } from '../../src/core/flow/write-side.ts'
import { createGroupCommit, queueInProcess } from '../../src/core/runtime/group-commit.ts'
import { openSqliteWriter } from '../../src/core/store/sqlite/sqlite.ts'
import { createSqliteWriteStore } from '../../src/core/store/sqlite/sqlite-write-store.ts'
import type { WriteStore } from '../../src/core/store/write-store.ts'
import { SQLITE_HOOKS } from '../../src/upkeep/sqlite-engine.ts'
import { createSimulatedCarrier, pushBody } from './carrier.ts'
import type { Lifecycle } from './lifecycles.ts'
import type { Pushes, Span } from './losses.ts'
import { measureStaleness, type Staleness, unknownTimes } from './staleness.ts'

export interface RelayRunOptions {
  readonly cadence: CadencePolicy
  readonly outage?: Span
  /** Maximum of polls per minute; default: no limit. */
  readonly callsPerMinute?: number
  /** Whether scarce calls go to the most overdue poll instead of the most valuable one. */
  readonly firstCome?: boolean
}

export interface HealthChange {
  readonly atMs: number
  /** Calls made until then. */
  readonly calls: number
  readonly health: PushHealth
}

export interface RelayRun {
  readonly calls: number
  readonly staleness: Staleness
  readonly healthChanges: readonly HealthChange[]
  /** Calls made by the end of each minute since the first scan. */
  readonly callsByMinute: readonly number[]
  readonly startMs: number
  readonly tookMs: number
}

const MINUTE_MS = 60_000
const AFTER_LAST_SCAN_MS = 80 * 60 * MINUTE_MS
const CONCURRENCY = 32
/** Required, but unused: there are no subscribers. */
export const DELIVER = { policy: { scheduleMs: [MINUTE_MS], jitter: 0 }, perEndpoint: 1, claimsPerAttempt: 3, failingAfterMs: 900_000 }
const PASSES_MAX = 100_000
export const recordOptions = (cadence: CadencePolicy): RecordRules => ({
  cadence,
  missedPushGraceMs: GRACE_MS,
  historyRetentionMs: 400 * 24 * 60 * MINUTE_MS,
  identifierReuseAfterMs: null,
})
export const GRACE_MS = 10 * MINUTE_MS

/**
 * Runs the relay's own flows and store on simulated time: every minute its pushes arrive, then the poller wakes. A parcel is watched from its
 * first scan, as if a shop had printed its label.
 */
export async function runRelay(lifecycles: readonly Lifecycle[], pushes: Pushes, options: RelayRunOptions): Promise<RelayRun> {
  const startedAt = performance.now()
  const events = eventsOf(lifecycles, pushes)
  const startMs = Math.floor((events[0]?.atMs ?? 0) / MINUTE_MS) * MINUTE_MS
  const endMs = Math.max(...lifecycles.map(({ scans }) => scans.at(-1)?.atMs ?? 0)) + AFTER_LAST_SCAN_MS
  let nowMs = startMs
  const clock = { now: () => nowMs, monotonic: () => nowMs }
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object, message: string) => console.error(message, fields) }
  const meter = { pollEnded() {}, missedPush() {} }

  const known = unknownTimes(lifecycles)
  const carrier = createSimulatedCarrier(lifecycles, clock.now, options.outage ?? null, (parcel, entries) => {
    const times = known[parcel]
    for (let at = 0; at < entries; at++) if (times !== undefined && (times[at] ?? 0) > nowMs) times[at] = nowMs
  })
  const model = createCarrierModelKeeper(clock)
  const folder = mkdtempSync(join(memoryFolder(), 'polling-'))
  const engine = await openSqliteWriter(join(folder, 'relay.db'), SQLITE_HOOKS)
  const store = createSqliteWriteStore(engine)
  const checkpoint = await openModelCheckpoint({ store, clock, log })
  const write = createWriteSide(
    { store: options.firstCome === true ? neverScarce(store) : store, clock, log, checkpoint, model },
    { record: recordOptions(options.cadence), deliver: DELIVER },
  )
  let newEntries = 0
  const recorder = createGroupCommit(
    {
      queue: queueInProcess(write.record, 256),
      monotonic: clock.monotonic,
      onCommitted(report) {
        for (const outcome of report.outcomes) if (outcome.kind === 'recorded') newEntries += outcome.newEntries
      },
      onFailed: (error) => log.error({ error }, 'a batch failed'),
    },
    { recorderMax: 1_000_000, waitingMax: 1_000_000, patienceMs: Number.POSITIVE_INFINITY },
  )
  const refresh = createRefresh(
    { carrier: carrier.port, recorder, reads: { findParcel: async () => null }, write, meter, clock },
    { languages: ['en'] },
  )
  const healthChanges: HealthChange[] = []
  const watchHealth = () => {
    const health = model.current().pushHealth
    if (health !== (healthChanges.at(-1)?.health ?? 'unknown')) healthChanges.push({ atMs: nowMs, calls: carrier.calls(), health })
  }
  const allowance = createAllowance(write, options.callsPerMinute ?? Number.POSITIVE_INFINITY, watchHealth)
  const pollDue = createPoller(
    { write: allowance, refresh, underWay: createPollsUnderWay(), meter, clock, log, isQuiet: () => false },
    { concurrency: CONCURRENCY },
  )

  const callsByMinute: number[] = []

  let next = 0
  for (let minuteMs = startMs; minuteMs <= endMs; minuteMs += MINUTE_MS) {
    const submitted: Promise<unknown>[] = []
    for (; next < events.length; next++) {
      const event = events[next]
      if (event === undefined || event.atMs > minuteMs + MINUTE_MS) break
      nowMs = event.atMs
      if (event.kind === 'birth') await write.watch({ identifier: event.id, nowMs })
      else {
        const times = known[event.parcel]
        if (times !== undefined) times[event.at] = Math.min(times[event.at] ?? 0, nowMs)
        submitted.push(recorder.submit(event.push))
      }
    }
    await Promise.all(submitted)
    nowMs = minuteMs + MINUTE_MS
    watchHealth()
    allowance.refill()
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      const result = await pollDue()
      watchHealth()
      if (result === 'idle') break
    }
    callsByMinute.push(carrier.calls())
  }
  await write.close()
  await engine.close()
  rmSync(folder, { recursive: true })

  const entries = lifecycles.reduce((sum, { scans }) => sum + scans.length, 0)
  const isHeldBack = options.callsPerMinute !== undefined
  if (newEntries !== entries && !isHeldBack) throw new Error(`the relay knows ${newEntries} entries of ${entries}`)
  // Entries never found, for lack of calls, count as unknown until the end.
  for (const times of known) for (const [at, knownMs] of times.entries()) times[at] = Math.min(knownMs, endMs)
  const staleness = measureStaleness(lifecycles, pushes, known)
  return { calls: carrier.calls(), staleness, healthChanges, callsByMinute, startMs, tookMs: performance.now() - startedAt }
}

/** Makes every poll look as if it fell due just now, so that the poller claims polls in due order instead of by value. */
function neverScarce(store: WriteStore): WriteStore {
  return {
    ...store,
    transaction: (work) =>
      store.transaction((tx) =>
        work({ ...tx, duePolls: async (ask) => (await tx.duePolls(ask)).map((poll) => ({ ...poll, dueAtMs: ask.nowMs })) }),
      ),
  }
}

/** Puts the store on an in-memory file system if there is one, because syncs would dominate the run time. */
function memoryFolder(): string {
  return existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
}

type SimulatedEvent =
  | { readonly kind: 'birth'; readonly atMs: number; readonly id: string }
  | { readonly kind: 'push'; readonly atMs: number; readonly parcel: number; readonly at: number; readonly push: IncomingPush }

function eventsOf(lifecycles: readonly Lifecycle[], pushes: Pushes): readonly SimulatedEvent[] {
  const events = lifecycles.flatMap(({ id, scans }, parcel): SimulatedEvent[] => {
    const arrivals = scans.flatMap((scan, at): SimulatedEvent[] => {
      const atMs = pushes[parcel]?.[at] ?? null
      if (atMs === null) return []
      const push: IncomingPush = parsePush({ body: pushBody(id, scan), contentEncoding: null, receivedAtMs: atMs, keyIndex: 0 })
      return [{ kind: 'push', atMs, parcel, at, push }]
    })
    return [{ kind: 'birth', atMs: scans[0]?.atMs ?? 0, id }, ...arrivals]
  })
  return events.sort((a, b) => a.atMs - b.atMs)
}

/** Limits polls per minute, as the call budget does; the rest wait. */
function createAllowance(write: WriteSide, callsPerMinute: number, onSettled: () => void) {
  let left = 0
  return {
    async settleMissedPushes(nowMs: number) {
      const missed = await write.settleMissedPushes(nowMs)
      onSettled()
      return missed
    },
    refill() {
      // Unused calls do not accumulate, except for fractions of a call.
      left = Math.min(left + callsPerMinute, Math.max(callsPerMinute, 1))
    },
    async claimDuePolls(request: Parameters<WriteSide['claimDuePolls']>[0]) {
      const limit = Math.min(request.limit, Math.floor(left))
      if (limit === 0) return []
      const due = await write.claimDuePolls({ ...request, limit })
      left -= due.length
      return due
    },
  }
}
