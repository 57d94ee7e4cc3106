import { randomBytes, randomUUID } from 'node:crypto'
import { createTellOperators, saveOperator } from '../console/events/tell-operators.tx.ts'
import { type Config, deliveryRules } from '../core/config/config.ts'
import type { DeliveryRules } from '../core/domain/delivery/dispatch-round.ts'
import type { ErasureRules } from '../core/domain/history/erased.ts'
import type { RecordRules } from '../core/domain/history/recording.ts'
import { type ClockWatch, createClockWatch, loadClockRecord } from '../core/flow/admin/clock-watch.ts'
import { createTokenKeys } from '../core/flow/admin/tokens/token-keys.tx.ts'
import { createAuditTrail } from '../core/flow/audit.tx.ts'
import { createDispatchRound } from '../core/flow/delivery/dispatching/settle.tx.ts'
import { createConfiguredEndpoints, createEditEndpoints } from '../core/flow/delivery/edit-endpoints.tx.ts'
import { createReplays, createRetryNow } from '../core/flow/delivery/redeliver.tx.ts'
import { createRecord } from '../core/flow/history/record.tx.ts'
import { createCarrierMemory } from '../core/flow/polling/carrier-memory.tx.ts'
import { type CarrierModelKeeper, createCarrierModelKeeper } from '../core/flow/polling/carrier-model.ts'
import { createClaimDuePolls, createClaimPoll } from '../core/flow/polling/claim-polls.tx.ts'
import { createModelVerbs, type ModelCheckpoint, openModelCheckpoint } from '../core/flow/polling/model-checkpoint.ts'
import { createNotePollOutcome, createReschedulePolls, createSettleMissedPushes } from '../core/flow/polling/schedule-poll.tx.ts'
import { createWatchParcels } from '../core/flow/polling/watch-parcels.tx.ts'
import type { Clock, Log } from '../core/flow/ports.ts'
import type { WriteSide } from '../core/flow/write-side.ts'
import type { Engine, OpenWriteStore } from '../core/store/contract.ts'
import type { StoreCopier } from '../core/store/engine.ts'
import { makeSetting } from '../core/store/settings.ts'
import { tellSaved, type WriteStore } from '../core/store/write-store.ts'
import { createSaveOrder } from '../insight/order/order.tx.ts'
import { createFoldReport } from '../insight/report/report.tx.ts'
import { watchHistories } from '../insight/watchdogs/watch-histories.tx.ts'
import type { WatchdogRules } from '../insight/watchdogs/watchdog.rules.ts'
import { createWatchdogs } from '../insight/watchdogs/watchdogs.tx.ts'
import { createBackups } from '../upkeep/backups/backups.tx.ts'
import { createErase } from '../upkeep/erasure/erase.tx.ts'
import { createReprocess, createReprocessBatches } from '../upkeep/inbox/reprocess.tx.ts'
import { createJobs } from '../upkeep/jobs/jobs.tx.ts'
import { createRebuild } from '../upkeep/rebuild/rebuild.tx.ts'
import { createKeepRefusal } from '../upkeep/refusals/kept-refusals.ts'
import { createTellRestores, lastRestoreAtMs } from '../upkeep/restore/restores.tx.ts'
import { KEPT_FOREVER, type Retention } from '../upkeep/retention/retention.rules.ts'
import { createPrune } from '../upkeep/retention/retention.tx.ts'
import { sqlite } from '../upkeep/sqlite-engine.ts'

const RELAY_ID = 'relay-id'
const TOKEN_KEY_BYTES = 32
const RELAY_ID_BYTES = 6

export interface WriteSideOptions {
  readonly sqlitePath: string
  readonly engine?: Engine
  readonly record: RecordRules
  readonly deliver: DeliveryRules
  /** How long data is kept; absent: nothing is removed because of its age. */
  readonly retention?: Retention
  /** Absent: no rule watches over parcels. */
  readonly watchdogs?: WatchdogRules
}

export function writeRulesOf(config: Config): Pick<WriteSideOptions, 'record' | 'deliver' | 'retention' | 'watchdogs'> {
  const { cadence, finished, missedPushGraceMs } = config.poll
  return {
    record: {
      cadence: { ...cadence, ...finished },
      missedPushGraceMs,
      historyRetentionMs: config.retention.historyMs,
      identifierReuseAfterMs: config.identifierReuseAfterMs,
    },
    deliver: deliveryRules(config),
    retention: config.retention,
    watchdogs: { rules: config.watchdogs ?? [], zone: config.zone },
  }
}

export interface WriteSideParts {
  readonly store: WriteStore & { readonly copier?: StoreCopier }
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
  readonly checkpoint: ModelCheckpoint
  /** When the store was last restored from a backup, epoch milliseconds; null or absent: never. */
  readonly restoredAtMs?: number | null
  readonly model: CarrierModelKeeper
  /** Absent: the clock is compared from now on. */
  readonly clockWatch?: ClockWatch
  /** Called after a commit that changed parcels, except by observations. The `BatchReport` tells what observations changed. */
  readonly changed?: (parcelIds: readonly number[]) => void
}

/** Opens the store and assembles everything that writes to it. */
export async function openWriteSide(
  { sqlitePath, engine = sqlite, ...options }: WriteSideOptions,
  clock: Clock,
  log: Pick<Log, 'error'>,
  changed: WriteSideParts['changed'] = () => undefined,
): Promise<WriteSide> {
  return assembleWriteSide({ ...(await openModel(await engine.openWriteStore(sqlitePath), { clock, log })), changed }, options)
}

interface OpenParts extends WriteSideParts {
  readonly store: OpenWriteStore
}

/** Loads what the last run has learnt about the carrier. */
export async function openModel(store: OpenWriteStore, { clock, log }: Pick<WriteSideParts, 'clock' | 'log'>): Promise<OpenParts> {
  const restoredAtMs = await lastRestoreAtMs(store)
  const checkpoint = await openModelCheckpoint({ store, clock, log, restoredAtMs })
  const clockWatch = createClockWatch(clock, randomUUID(), await loadClockRecord(store))
  return { store, clock, log, checkpoint, restoredAtMs, clockWatch, model: createCarrierModelKeeper(clock, checkpoint.from) }
}

/** Assembles everything that writes to an open store. `close` also closes the store. */
export function assembleWriteSide(parts: OpenParts, options: Omit<WriteSideOptions, 'sqlitePath' | 'engine'>): WriteSide {
  const { store } = parts
  const writes = createWriteSide(parts, options)
  return {
    ...writes,
    async close() {
      await writes.close()
      await store.close()
    },
  }
}

/** Makes everything that writes. It can run on any thread. `close` leaves the store open. */
export function createWriteSide(parts: WriteSideParts, options: Omit<WriteSideOptions, 'sqlitePath' | 'engine'>): WriteSide {
  const { clock, log, checkpoint, model, changed = () => undefined } = parts
  const watchdogs = { rules: options.watchdogs ?? { rules: [], zone: 'UTC' } }
  const store = watchHistories(parts.store, () => watchdogs.rules)
  const clockWatch = parts.clockWatch ?? createClockWatch(clock, randomUUID(), null)
  const currentModel = () => ({ ...model.current(), isClockDoubted: clockWatch.doubt() !== null })
  let tombstoneKey: Uint8Array | null = null
  const ports = {
    store,
    clock,
    log,
    model: currentModel,
    learn: model.learn,
    foundByPoll: model.foundByPoll,
    tombstoneKey: () => tombstoneKey,
  }
  const polling = { ...ports, store: tellSaved(store, changed) }
  const { recordRules, retention, ...adjusting } = adjustableRules(options, parts.restoredAtMs ?? null)
  const pruning = { retention, changed, clockWatch }
  const notes = createNotePollOutcome(polling, recordRules)
  const batches = createReprocessBatches(ports, recordRules)
  return {
    ...createClaimDuePolls(polling, recordRules, Math.random),
    ...createClaimPoll(store),
    ...notes,
    ...createWatchParcels(polling, recordRules),
    ...createSaveOrder(polling, recordRules),
    ...createFoldReport(store),
    ...createReprocess(ports, recordRules, batches),
    ...createKeepRefusal(store),
    ...createCarrierMemory(store),
    ...createReplays(store),
    ...createJobs(store, batches, pruning, createRebuild({ ...ports, changed }, recordRules)),
    ...createPrune(store, pruning),
    async lookAtClock(others) {
      clockWatch.learn(others)
      return clockWatch.doubt()
    },
    ...createWatchdogs(store, watchdogs),
    ...createBackups(store, store.copier),
    ...createTellRestores(store),
    ...createRetryNow(store),
    ...createTellOperators(store),
    ...createAuditTrail(store, ports.tombstoneKey),
    ...createErase({ store, changed, tombstoneKey: ports.tombstoneKey, newLineage: () => randomUUID() }),
    async useTombstoneKey(key) {
      tombstoneKey = key
    },
    ...createDispatchRound(store, options.deliver, clock),
    ...createConfiguredEndpoints(store, saveOperator),
    ...createEditEndpoints(store),
    ...adjusting,
    ...createModelVerbs(
      { ...parts, currentModel, reschedulePolls: createReschedulePolls(ports, recordRules) },
      { ...notes, record: createRecord(ports, recordRules), settleMissedPushes: createSettleMissedPushes(store) },
      recordRules,
    ),
    ...createTokenKeys(store, () => randomBytes(TOKEN_KEY_BYTES)),
    relayId: async () => Buffer.from(await secretOf(store, RELAY_ID, RELAY_ID_BYTES)).toString('hex'),
    async close() {
      model.settle()
      await checkpoint.keep(model.learnt(), { all: true })
    },
  }
}

/** Makes rules whose values can change while the relay runs, and the methods that change them. */
function adjustableRules(
  { record, retention = KEPT_FOREVER }: Pick<WriteSideOptions, 'record' | 'retention'>,
  restoredAtMs: number | null,
) {
  let kept = retention
  const recordRules = { ...record, restoredAtMs }
  return {
    recordRules,
    retention: () => kept,
    adjustRetention: async (next: Retention) => {
      kept = next
      recordRules.historyRetentionMs = next.historyMs
    },
    adjustErasure: async (next: ErasureRules) => {
      recordRules.identifierReuseAfterMs = next.identifierReuseAfterMs
    },
  }
}

/** Loads a secret of random bytes, or makes it if the store has none. */
async function secretOf(store: WriteStore, name: string, bytes: number): Promise<Uint8Array> {
  return await store.transaction(async (tx) => (await tx.loadSetting(name)) ?? (await makeSetting(tx, name, randomBytes(bytes))))
}
