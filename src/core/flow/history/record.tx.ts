import { continueJoins, firstNeeds, joinNeeds, namesOf, startJoins } from '../../domain/history/batch-needs.ts'
import type { ChangeSet, Recorded } from '../../domain/history/change-set.ts'
import { decide } from '../../domain/history/decide.ts'
import { type Tombstone, tombstonesOf } from '../../domain/history/erased.ts'
import {
  type BatchReport,
  type Incoming,
  type RecordBatch,
  type RecordOutcome,
  type RecordRules,
  recordBatch,
} from '../../domain/history/recording.ts'
import { addLoaded, type BatchNeeds, type Snapshot, type StoredSnapshot, startSnapshot } from '../../domain/history/snapshot.ts'
import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import type { CadenceModel } from '../../domain/polling/cadence.ts'
import type { ScanSample } from '../../domain/polling/scan-rate.ts'
import { countQuarantine } from '../../store/admin/operations.ts'
import { addReportNote } from '../../store/admin/report-note-rows.ts'
import { findTombstones } from '../../store/history/tombstones.ts'
import type { Transactions, WriteStore, WriteTx } from '../../store/write-store.ts'
import type { Log } from '../ports.ts'

export interface RecordPorts {
  readonly log: Pick<Log, 'error'>
  readonly store: Transactions & Pick<WriteStore, 'isStorageFailure'>
  readonly clock: { now(): number; monotonic(): number }
  readonly model: () => CadenceModel
  readonly learn: (sample: ScanSample) => void
  /** Null: nothing was ever erased. */
  readonly tombstoneKey: () => Uint8Array | null
  /** Called with the event time of each entry that a poll reported before any push. */
  readonly foundByPoll: (eventAtMs: number) => void
}

/** The results of a transaction. After the commit, the model of the carrier learns from them. */
type Done = Pick<ChangeSet, 'recorded' | 'scanSamples' | 'foundByPoll'>

/**
 * Records pushes and polls, one transaction per batch (DOMAIN 5.2). The transaction loads what the batch needs, decides what the batch
 * changes, and applies the changes.
 *
 * An observation that cannot be recorded is quarantined, and all others are recorded. If the changes cannot be applied although the store
 * works, there is a bug, and the batch is rolled back. Then each observation is recorded in its own transaction, so that only the failing one
 * is quarantined. If the store itself fails, the whole batch fails.
 */
export function createRecord(ports: RecordPorts, rules: RecordRules): (batch: readonly Incoming[]) => Promise<BatchReport> {
  const { store, clock } = ports

  return async (batch) => {
    if (batch.length === 0) return { outcomes: [], touchedParcels: [], durationMs: 0 }
    const startedAt = clock.monotonic()
    const done = await store
      .transaction((tx) => recordTogether(tx, batch, ports, rules))
      .catch((error: unknown) => {
        if (store.isStorageFailure(error)) throw error
        return recordEach(batch, ports, rules)
      })
    learn(done, ports)
    return reportOf(done.recorded, clock.monotonic() - startedAt)
  }
}

export function learn({ scanSamples, foundByPoll }: Done, ports: Pick<RecordPorts, 'learn' | 'foundByPoll'>): void {
  for (const sample of scanSamples) ports.learn(sample)
  for (const eventAtMs of foundByPoll) ports.foundByPoll(eventAtMs)
}

export function reportOf(recorded: readonly Recorded[], durationMs: number): BatchReport {
  const outcomes: RecordOutcome[] = []
  const touchedParcels = new Set<number>()
  for (const { outcome, touched } of recorded) {
    outcomes.push(outcome)
    for (const parcelId of touched) touchedParcels.add(parcelId)
  }
  const report = { outcomes, touchedParcels: [...touchedParcels], durationMs }
  return recorded.some(({ touched }) => touched.length > 1) ? { ...report, joined: true } : report
}

/** How often `decide` may ask for more data. */
const NEEDS_MAX = 2

export async function recordTogether(
  tx: WriteTx,
  observations: readonly Incoming[],
  ports: RecordPorts,
  rules: RecordRules,
): Promise<Done> {
  const batch = recordBatch(observations, ports.clock.now())
  let snapshot: Snapshot = { ...(await loadBatch(tx, batch, ports.tombstoneKey())), model: ports.model() }
  let decided = decide(snapshot, batch, rules)
  for (let needs = 0; 'needs' in decided && needs < NEEDS_MAX; needs++) {
    snapshot = { ...(await loadNeeds(tx, snapshot, decided.needs)), model: snapshot.model }
    decided = decide(snapshot, batch, rules)
  }
  if ('needs' in decided) throw new Error(`a batch still needs data after loading it twice: ${JSON.stringify(decided.needs)}`)
  // On PostgreSQL this comes before the lock of the counter that all batches wait for.
  addReportNote(tx, decided.noted, batch.nowMs)
  await tx.applyChanges(decided)
  if (decided.erased.length > 0) tx.addTombstones(tombstonesOf(ports.tombstoneKey(), decided.erased))
  for (const [reason, count] of newlyQuarantined(decided)) countQuarantine(tx, reason, count, batch.nowMs)
  for (const err of decided.failures) ports.log.error({ err }, REFUSED)
  return decided
}

/** Counts quarantined pushes by reason. Reprocessed pushes are left out, because they were counted when they came. */
function newlyQuarantined({ recorded, writes }: ChangeSet): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  if (!recorded.some(({ outcome }) => outcome.kind === 'quarantined')) return counts
  for (const { state, reason, push } of writes.flatMap(({ inbox }) => inbox))
    if (state === 'quarantined' && reason !== null && push.inboxId === undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return counts
}

const REFUSED = 'an observation could not be recorded; it is quarantined'

/**
 * Records each observation in its own transaction, and quarantines those that cannot be recorded. If the store fails midway, the earlier
 * observations stay recorded. They are duplicates when they are sent again.
 */
export async function recordEach(observations: readonly Incoming[], ports: RecordPorts, rules: RecordRules): Promise<Done> {
  const all: Done[] = []
  for (const incoming of observations) {
    const record = (one: Incoming) => ports.store.transaction((tx) => recordTogether(tx, [one], ports, rules))
    all.push(await orQuarantined(ports, () => record(incoming), refused(incoming, record)))
  }
  return {
    recorded: all.flatMap(({ recorded }) => recorded),
    scanSamples: all.flatMap(({ scanSamples }) => scanSamples),
    foundByPoll: all.flatMap(({ foundByPoll }) => foundByPoll),
  }
}

/** If `record` fails although the store works, quarantines the observation instead. */
export async function orQuarantined<T>(
  { store, log }: Pick<RecordPorts, 'store' | 'log'>,
  record: () => Promise<T>,
  quarantine: () => Promise<T>,
): Promise<T> {
  try {
    return await record()
  } catch (err) {
    if (store.isStorageFailure(err)) throw err
    log.error({ err }, REFUSED)
    return await quarantine()
  }
}

function refused(incoming: Incoming, record: (one: Incoming) => Promise<Done>): () => Promise<Done> {
  if (incoming.kind === 'push') return () => record(failedPush(incoming))
  return async () => ({
    recorded: [{ outcome: { kind: 'quarantined', reason: 'failed' }, touched: [] }],
    scanSamples: [],
    foundByPoll: [],
  })
}

/** Returns a push that will be quarantined, because it could not be recorded. */
export function failedPush<Push extends IncomingPush>(push: Push): Push {
  return { ...push, reading: { ok: false, reason: 'failed' } }
}

/**
 * Loads what a batch is likely to need: the identifiers that it names, then their parcels, then the parcels to be joined. `key`: the key of
 * the tombstones; null: nothing was ever erased.
 */
export async function loadBatch(tx: WriteTx, batch: RecordBatch, key: Uint8Array | null): Promise<StoredSnapshot> {
  const names = namesOf(batch.observations)
  // Read the tombstones after the identifiers are locked, so that a parcel that is being erased is found as a parcel or by its tombstones.
  const [start, tombstones] = await Promise.all([
    tx.beginBatch(names, batch.observations.length),
    key === null ? new Map<string, Tombstone>() : findTombstones(tx, key, names),
  ])
  const snapshot = startSnapshot({ ...start, tombstones })
  return await loadNeeds(tx, snapshot, firstNeeds(batch, snapshot))
}

/** Adds what a batch needs to its snapshot. */
async function loadNeeds(tx: WriteTx, snapshot: StoredSnapshot, needs: BatchNeeds): Promise<StoredSnapshot> {
  let loaded = addLoaded(snapshot, await tx.loadNeeds(needs))
  let joins = startJoins(needs.joins, loaded)
  while (joins.length > 0) {
    loaded = addLoaded(loaded, await tx.loadNeeds(joinNeeds(joins, loaded)))
    const after = continueJoins(joins, loaded)
    joins = after.joins
    loaded = after.snapshot
  }
  return loaded
}
