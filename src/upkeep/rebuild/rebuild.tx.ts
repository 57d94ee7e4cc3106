import type { Job } from '../../core/domain/admin/job.ts'
import { type ChangeSet, emptyWriteSet } from '../../core/domain/history/change-set.ts'
import type { Overwritten } from '../../core/domain/history/overwritten.ts'
import type { IdentifierState } from '../../core/domain/history/parcel-state.ts'
import type { RecordRules } from '../../core/domain/history/recording.ts'
import type { CadenceModel } from '../../core/domain/polling/cadence.ts'
import { scheduleNextPoll } from '../../core/domain/polling/poll.ts'
import type { Log } from '../../core/flow/ports.ts'
import { saveJob } from '../../core/store/admin/jobs.ts'
import type { Session } from '../../core/store/engine.ts'
import { lookUpIdentifiers, pollableFrom } from '../../core/store/history/parcels.ts'
import { findTombstones } from '../../core/store/history/tombstones.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'
import { addPushes, type Evidence, noEvidence } from './evidence.rules.ts'
import type { RebuildJobTask } from './rebuild.rules.ts'
import { addLeft, addRebuilt, REBUILD_START, type RebuildProgress } from './rebuild.rules.ts'
import { type ParcelCorrection, type RebuiltParcel, rebuildParcel, type StoredParcel } from './rebuild-parcel.rules.ts'
import {
  correctParcels,
  listRebuildable,
  listStoredPushes,
  loadStoredParcels,
  newestParcelId,
  pagePushes,
  type RebuildableParcel,
} from './rebuilding.rows.ts'

export interface RebuildPorts {
  readonly log: Pick<Log, 'error'>
  readonly store: Transactions & { isStorageFailure(error: unknown): boolean }
  /** Returns the current model of the carrier, which decides when corrected parcels are polled next. */
  readonly model: () => CadenceModel
  /** The key of the tombstones; null: nothing was ever erased. */
  readonly tombstoneKey: () => Uint8Array | null
  /** Called after the commit, with the ids of the parcels that were corrected. */
  readonly changed: (parcelIds: readonly number[]) => void
}

type RebuildRules = Pick<RecordRules, 'cadence'>
type RebuildJob = Job & { readonly task: RebuildJobTask }

/** How many parcels a batch of a rebuild has compared, by result. */
export interface RebuildNews {
  readonly equal: number
  /** Parcels that differ. They were not corrected, because the rebuild only compared. */
  readonly differing: number
  readonly corrected: number
  /** Parcels that could not be compared. */
  readonly left: number
  /** Whether corrections were added to the feed. */
  readonly hasChanged: boolean
}

const PARCELS_MAX = 100
/** Reading an answer takes about as long as reading this many pushes. */
const PUSHES_PER_ANSWER = 4
/** Saving the progress costs a sync to disk. So after steps that correct nothing, it is saved only every tenth time. */
const SAVE_EVERY = 10
/** How many times a parcel is read in pieces if it keeps changing. */
const TRIES_MAX = 3
/** The first sequence for events that are only compared and not stored. It is above all real sequences. */
const IMAGINED = 2 ** 52

/** A parcel with many pushes, which is read in pieces, and the evidence from the pieces so far. */
interface Pieces {
  readonly parcelId: number
  readonly evidence: Evidence
  /** The last sequence of the feed before the first push was read. */
  readonly knownTo: number
  /** The digest of the last push that was read. */
  readonly after: string
  readonly read: number
  readonly tries: number
}

/** The progress of the job in this process. The saved progress may be behind, so a restart reads a few parcels again. */
interface Remembered {
  readonly jobId: number
  readonly progress: RebuildProgress
  readonly unsaved: number
  readonly pieces: Pieces | null
}

/** What a step rebuilds. `several`: as many parcels as fit. `one`: the next parcel. `none`: it skips the next parcel, which failed alone. */
type Extent = 'several' | 'one' | 'none'

interface Step {
  readonly progress: RebuildProgress
  readonly pieces: Pieces | null
  readonly isDone: boolean
  readonly corrected: readonly number[]
}

/**
 * Creates the function that does one step of a rebuild job: a few parcels in a short transaction, so that pushes hardly wait for it. If a
 * parcel fails although the store works, there is a bug. Then this parcel stays as it is, and the log names the last parcel before it.
 */
export function createRebuild({ store, log, model, tombstoneKey, changed }: RebuildPorts, rules: RebuildRules) {
  let remembered: Remembered | null = null
  const attempt = (extent: Extent, { limit, nowMs }: { readonly limit: number; readonly nowMs: number }) =>
    store.transaction(
      async (tx) => {
        const [job, next] = (await tx.listUnendedJobs(4)).filter(({ task }) => task.kind !== 'move' && task.kind !== 'backup')
        if (job === undefined || !isRebuild(job)) return null
        const from = await begun(tx, resume(job, remembered))
        const step = await take(tx, { job, from, extent, limit, nowMs, model: model(), key: tombstoneKey(), rules })
        const isSaved = job.cursor === null || step.isDone || step.corrected.length > 0 || from.unsaved + 1 >= SAVE_EVERY
        if (isSaved) await saveJob(tx, jobAfter(job, step, nowMs), nowMs)
        const { progress, pieces } = step
        const after: Remembered = { jobId: job.jobId, progress, pieces, unsaved: isSaved ? 0 : from.unsaved + 1 }
        return { after, step, news: newsOf(job, from.progress, step), isDone: step.isDone && next === undefined }
      },
      { ofRole: 'janitor' },
    )
  const otherwise =
    <Result>(again: () => Promise<Result>) =>
    (err: unknown): Promise<Result> => {
      if (store.isStorageFailure(err)) throw err
      log.error(
        { err, after: remembered?.progress.rebuiltTo ?? null },
        'part of a rebuild failed; a parcel that fails alone is left as it is',
      )
      return again()
    }
  /** `news` null: the oldest job is not a rebuild. */
  return async (request: { readonly limit: number; readonly nowMs: number }) => {
    const done = await attempt('several', request)
      .catch(otherwise(() => attempt('one', request)))
      .catch(otherwise(() => attempt('none', request)))
    if (done === null) return { isDone: false, news: null }
    remembered = done.after
    if (done.step.corrected.length > 0) changed(done.step.corrected)
    return { isDone: done.isDone, news: done.news }
  }
}

export function isRebuild(job: Job): job is RebuildJob {
  return job.task.kind === 'rebuild'
}

/** Returns the progress of this process, or the saved progress if another process has continued the job and is ahead. */
function resume({ jobId, cursor }: RebuildJob, remembered: Remembered | null): Remembered {
  const saved = cursor !== null && 'rebuiltTo' in cursor ? cursor : REBUILD_START
  const isAhead = remembered?.jobId === jobId && remembered.progress.rebuiltTo >= saved.rebuiltTo
  return isAhead ? remembered : { jobId, progress: saved, unsaved: 0, pieces: null }
}

/** Notes at the first step where the rebuild ends. Otherwise it would follow new parcels, and on a busy relay it would not end. */
async function begun(tx: WriteTx, from: Remembered): Promise<Remembered> {
  const { progress } = from
  return progress.until === undefined ? { ...from, progress: { ...progress, until: await newestParcelId(tx) } } : from
}

function jobAfter(job: RebuildJob, { progress, isDone }: Step, nowMs: number): Job {
  const saved = { ...job, done: progress.report.parcels, cursor: progress }
  return isDone ? { ...saved, state: 'done', endedAtMs: nowMs } : { ...saved, state: 'running' }
}

function newsOf({ task }: RebuildJob, { report: before }: RebuildProgress, { progress: { report }, corrected }: Step): RebuildNews {
  const differing = report.differing - before.differing
  const left = report.left - before.left
  const equal = report.parcels - before.parcels - differing - left
  return {
    equal,
    left,
    ...(task.dryRun ? { differing, corrected: 0 } : { differing: 0, corrected: differing }),
    hasChanged: corrected.length > 0,
  }
}

interface Work {
  readonly job: RebuildJob
  readonly from: Remembered
  readonly extent: Extent
  readonly limit: number
  readonly nowMs: number
  readonly model: CadenceModel
  readonly key: Uint8Array | null
  readonly rules: RebuildRules
}

async function take(tx: WriteTx, work: Work): Promise<Step> {
  const { job, from, extent, limit } = work
  const { parcels, upTo } = await nextParcels(tx, job.task, from.progress)
  const [first] = parcels
  const step: Step = { progress: from.progress, pieces: null, isDone: false, corrected: [] }
  if (first === undefined) return upTo === null ? { ...step, isDone: true } : { ...step, progress: { ...from.progress, rebuiltTo: upTo } }
  if (extent === 'none') return { ...step, progress: addLeft(from.progress, first.parcelId) }
  if (first.pushes > limit) return await takePiece(tx, work, first)
  const ids = (extent === 'one' ? [first] : fitting(parcels, limit)).map(({ parcelId }) => parcelId)
  const stored = await loadStoredParcels(tx, ids)
  const pushes = Map.groupBy(await listStoredPushes(tx, ids), ({ parcelId }) => parcelId)
  const read = stored.map((parcel) => {
    const evidence = noEvidence()
    addPushes(evidence, pushes.get(parcel.state.parcelId) ?? [])
    return { parcel, evidence, knownTo: Number.POSITIVE_INFINITY }
  })
  const { rebuilt, corrected } = await rebuildAll(tx, work, read)
  const progress = rebuilt.reduce(addRebuilt, from.progress)
  return { ...step, progress: { ...progress, rebuiltTo: ids.at(-1) ?? progress.rebuiltTo }, corrected }
}

/** Returns the next parcels of the task. `upTo`: the last id of the task that was looked up; null: none was. */
async function nextParcels(
  tx: WriteTx,
  task: RebuildJobTask,
  { rebuiltTo: after, until = Number.POSITIVE_INFINITY }: RebuildProgress,
): Promise<{ readonly parcels: readonly RebuildableParcel[]; readonly upTo: number | null }> {
  if (task.parcels === null) {
    const parcels = await listRebuildable(tx, { after, limit: PARCELS_MAX })
    return { parcels: parcels.filter(({ parcelId }) => parcelId <= until), upTo: null }
  }
  const wanted = task.parcels.filter((parcelId) => parcelId > after).slice(0, PARCELS_MAX)
  const found = await Promise.all(wanted.map((parcelId) => listRebuildable(tx, { after: parcelId - 1, limit: 1 })))
  return { parcels: found.flat().filter(({ parcelId }, at) => parcelId === wanted[at]), upTo: wanted.at(-1) ?? null }
}

/** Returns as many of the first parcels as can be read quickly in one step, but at least one. */
function fitting(parcels: readonly RebuildableParcel[], limit: number): readonly RebuildableParcel[] {
  let weight = 0
  const end = parcels.findIndex(({ pushes, answers }, at) => {
    weight += 1 + pushes + answers * PUSHES_PER_ANSWER
    return at > 0 && weight > limit
  })
  return end === -1 ? parcels : parcels.slice(0, end)
}

/** Reads the next pushes of a parcel. After the last push, rebuilds the parcel. */
async function takePiece(tx: WriteTx, work: Work, { parcelId }: RebuildableParcel): Promise<Step> {
  const { from, limit } = work
  const under = from.pieces?.parcelId === parcelId ? from.pieces : null
  const begin = async (tries: number): Promise<Pieces> => {
    const { last } = await tx.feedSpan()
    return { parcelId, evidence: noEvidence(), knownTo: last, after: '', read: 0, tries }
  }
  const pieces = under ?? (await begin(0))
  const page = await pagePushes(tx, { parcelId, after: pieces.after, limit })
  addPushes(pieces.evidence, page)
  const read = pieces.read + page.length
  const step: Step = { progress: from.progress, pieces: null, isDone: false, corrected: [] }
  if (page.length === limit) return { ...step, pieces: { ...pieces, after: page.at(-1)?.digest ?? '', read } }
  const stored = await loadStoredParcels(tx, [parcelId])
  const [now] = await listRebuildable(tx, { after: parcelId - 1, limit: 1 })
  const isAllRead = now?.parcelId === parcelId && now.pushes === read
  const parcels = stored.map((parcel) => ({ parcel, evidence: pieces.evidence, knownTo: pieces.knownTo }))
  const { rebuilt, corrected } = await rebuildAll(tx, isAllRead ? work : { ...work, job: onlyCompared(work.job) }, parcels)
  // A push that came during the reading may not have been read. This does not matter if nothing needs a correction.
  if (isAllRead || rebuilt.every(({ correction }) => correction === null))
    return { ...step, progress: { ...rebuilt.reduce(addRebuilt, from.progress), rebuiltTo: parcelId }, corrected }
  if (pieces.tries + 1 >= TRIES_MAX) return { ...step, progress: addLeft(from.progress, parcelId) }
  return { ...step, pieces: await begin(pieces.tries + 1) }
}

function onlyCompared(job: RebuildJob): RebuildJob {
  return { ...job, task: { ...job.task, dryRun: true } }
}

interface ReadParcel {
  readonly parcel: StoredParcel
  readonly evidence: Evidence
  readonly knownTo: number
}

async function rebuildAll(
  tx: WriteTx,
  work: Work,
  shown: readonly ReadParcel[],
): Promise<{ readonly rebuilt: readonly RebuiltParcel[]; readonly corrected: readonly number[] }> {
  const read = await withoutErased(tx, work.key, shown)
  const rebuild = (sequence: number, elsewhere: ReadonlyMap<string, IdentifierState>) => {
    let next = sequence
    const nextSequence = () => next++
    const rebuilt = read.map(({ parcel, ...bytes }) => rebuildParcel(parcel, { ...bytes, elsewhere, nextSequence }))
    return { rebuilt, next }
  }
  const first = rebuild(IMAGINED, new Map())
  const elsewhere = await ownersOf(tx, read, first.rebuilt)
  const compared = elsewhere.size === 0 ? first : rebuild(IMAGINED, elsewhere)
  const differs = compared.rebuilt.some(({ correction }) => correction !== null)
  if (!differs || work.job.task.dryRun) return { rebuilt: compared.rebuilt, corrected: [] }
  const { next } = await tx.beginBatch([], 0)
  const applied = rebuild(next.sequence, elsewhere)
  const corrections = await scheduled(
    tx,
    applied.rebuilt.flatMap(({ correction }) => correction ?? []),
    work,
  )
  await correctParcels(tx, corrections)
  await tx.applyChanges({ ...NOTHING, writes: [writesOf(corrections, work.nowMs)], next: { ...next, sequence: applied.next } })
  return { rebuilt: applied.rebuilt, corrected: corrections.map(({ state }) => state.parcelId) }
}

/** Removes erased identifiers from the evidence. Stored pushes and answers may name them, but no parcel may get them again. */
async function withoutErased(tx: Session, key: Uint8Array | null, read: readonly ReadParcel[]): Promise<readonly ReadParcel[]> {
  if (key === null) return read
  const known = new Set(read.flatMap(({ parcel }) => parcel.identifiers.map(({ value }) => value)))
  const lacking = new Set(read.flatMap(({ evidence }) => [...evidence.trackingIds].filter((value) => !known.has(value))))
  const erased = await findTombstones(tx, key, [...lacking])
  if (erased.size === 0) return read
  return read.map(({ evidence, ...one }) => {
    const trackingIds = new Set([...evidence.trackingIds].filter((value) => !erased.has(value)))
    return { ...one, evidence: { ...evidence, trackingIds } }
  })
}

const CORRECTED = JSON.stringify({ lost: 'rebuild' } satisfies Overwritten)

const NOTHING = { recorded: [], erased: [], scanSamples: [], foundByPoll: [], noted: [], failures: [] } satisfies Partial<ChangeSet>

/** Finds the identifiers that the rebuild would add to a parcel although they belong to other parcels. */
async function ownersOf(
  tx: Session,
  read: readonly ReadParcel[],
  rebuilt: readonly RebuiltParcel[],
): Promise<ReadonlyMap<string, IdentifierState>> {
  const added = rebuilt.flatMap(({ correction }, at) => {
    const known = new Set(read[at]?.parcel.identifiers.map(({ value }) => value))
    return correction?.identifiers.map(({ value }) => value).filter((value) => !known.has(value)) ?? []
  })
  const found = added.length === 0 ? [] : await lookUpIdentifiers(tx, [...new Set(added)])
  return new Map(found.map((identifier) => [identifier.value, identifier]))
}

/** Plans the next poll of each parcel whose newest entry or number of entries was wrong. */
async function scheduled(
  tx: Session,
  corrections: readonly ParcelCorrection[],
  { model, rules, nowMs }: Work,
): Promise<readonly ParcelCorrection[]> {
  const unknown = corrections.filter(({ isRescheduled, state }) => isRescheduled && state.stopped === 'unknown')
  const fromMs = await pollableFrom(
    tx,
    unknown.map(({ state }) => state.parcelId),
  )
  return corrections.map((correction) => {
    const { state, isRescheduled } = correction
    if (!isRescheduled) return correction
    return { ...correction, state: scheduleNextPoll(state, fromMs.get(state.parcelId) ?? null, model, rules.cadence, nowMs) }
  })
}

function writesOf(corrections: readonly ParcelCorrection[], nowMs: number): ChangeSet['writes'][number] {
  const writes = emptyWriteSet(null)
  for (const { state, saved, identifiers, feed, correctedAt } of corrections) {
    writes.parcels.set(state.parcelId, state)
    writes.sightings.push(...saved.map((kept) => ({ parcelId: state.parcelId, kept })))
    const isGiven = ({ value }: IdentifierState) => writes.identifiers.some((other) => other.value === value)
    writes.identifiers.push(...identifiers.filter((one) => !isGiven(one)))
    writes.feed.push(...feed)
    // The rows that the correction replaces are gone, so what was known before it is known only as corrected (DOMAIN 11.4).
    if (correctedAt !== null)
      writes.overwritten.push({ parcelId: state.parcelId, sequence: correctedAt, learntAtMs: nowMs, value: CORRECTED })
    if (state.latest !== null) writes.statuses.add(state.latest.status)
  }
  return writes
}
