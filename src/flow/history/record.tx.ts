import { diffEntries } from '../../domain/history/changes.ts'
import { deriveEntries, type Entry, instantsTie, orderHistory } from '../../domain/history/history.ts'
import type { PollObservation, PushObservation, QuarantineReason } from '../../domain/history/observation.ts'
import type { IdentifierState, ParcelState } from '../../domain/history/parcel-state.ts'
import { ENTRIES_MAX } from '../../domain/history/pull-response.ts'
import type { BatchReport, Incoming, IncomingPoll, RecordOutcome } from '../../domain/history/recording.ts'
import { type KeptSighting, mergeSightings, sightingsOf } from '../../domain/history/sightings.ts'
import { anomalyOf } from '../../domain/ingest/anomaly.ts'
import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import type { CadenceModel, CadencePolicy } from '../../domain/polling/cadence.ts'
import type { ScanSample } from '../../domain/polling/scan-rate.ts'
import { scanSamplesOf } from '../../domain/polling/scan-samples.ts'
import { appendEvents, expectPushes, type FeedAddition, planEvents } from '../delivery/append-feed.tx.ts'
import { appendParcelUpdate, envelopeOf } from '../delivery/append-parcel-update.tx.ts'
import type { Source } from '../delivery/event-payload.tx.ts'
import { noLater, reactivate, schedule } from '../polling/schedule-poll.tx.ts'
import type { Log } from '../ports.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'
import { joinParcels } from './join-parcels.tx.ts'
import { keepAnswer } from './keep-answer.tx.ts'

export interface RecordOptions {
  readonly cadence: CadencePolicy
  readonly missedPushGraceMs: number
  readonly historyRetentionMs: number
  /** Scarce calls go to whatever fell due first, not to what is worth most: only to measure what that is worth. */
  readonly firstCome?: boolean
}

export interface RecordPorts {
  readonly store: WriteStore
  readonly clock: { now(): number; monotonic(): number }
  readonly log: Pick<Log, 'error'>
  /** What holds for every parcel's next check at this time. */
  readonly outlook: () => CadenceModel
  /** Told what an observation teaches of the carrier's rhythm. */
  readonly learn: (lesson: ScanSample) => void
  /** Told when an entry happened that a poll was the first to bring. */
  readonly found: (eventAtMs: number) => void
}

interface Recorded {
  readonly outcome: RecordOutcome
  readonly touched: readonly number[]
}

/**
 * The one door through which everything becomes known, push or poll: one transaction a batch (DOMAIN 5.2). What is understood and cannot be
 * kept is quarantined in its place. A batch is first recorded straight through; should an observation break it, which would be a bug, the
 * batch is undone and recorded again with each observation on its own, so that the one that fails is quarantined and no other. A store that
 * fails takes the whole batch with it.
 */
export function createRecord(ports: RecordPorts, options: RecordOptions): (batch: readonly Incoming[]) => Promise<BatchReport> {
  const { store, clock } = ports

  async function recordAll(batch: readonly Incoming[], alone: boolean): Promise<readonly Recorded[]> {
    return await store.transaction(async (tx) => {
      const recorded: Recorded[] = []
      const one = alone ? recordAlone : recordOne
      for (const incoming of batch) recorded.push(await one(tx, incoming, ports, options))
      return recorded
    })
  }

  return async (batch) => {
    if (batch.length === 0) return { outcomes: [], touchedParcels: [], durationMs: 0 }
    const startedAt = clock.monotonic()
    const recorded = await recordAll(batch, false).catch((error: unknown) => {
      if (store.isStorageFailure(error)) throw error
      return recordAll(batch, true)
    })
    return reportOf(recorded, clock.monotonic() - startedAt)
  }
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

/** One that cannot be recorded is quarantined, and leaves nothing else behind in the transaction. */
export async function recordAlone(tx: WriteTx, incoming: Incoming, ports: RecordPorts, options: RecordOptions): Promise<Recorded> {
  const { store } = ports
  try {
    return await store.savepoint(tx, () => recordOne(tx, incoming, ports, options))
  } catch (error) {
    if (store.isStorageFailure(error)) throw error
    ports.log.error({ err: error }, 'an observation could not be recorded; it is quarantined')
    return await quarantine(tx, incoming, 'failed')
  }
}

function recordOne(tx: WriteTx, incoming: Incoming, ports: RecordPorts, options: RecordOptions): Promise<Recorded> {
  return incoming.kind === 'push' ? recordPush(tx, incoming, ports, options) : recordPoll(tx, incoming, ports, options)
}

async function recordPoll(tx: WriteTx, poll: IncomingPoll, ports: RecordPorts, options: RecordOptions): Promise<Recorded> {
  const { observation, watch } = poll
  const subject = await findOrJoin(tx, observation, ports.clock.now())
  if (subject === null) return await quarantine(tx, poll, 'parcel_full')
  const { parcel, ...found } = subject
  const now = watch ? { ...parcel, ...reactivate(parcel, observation.askedAtMs) } : parcel
  const recorded = await merge(tx, { now, ...found }, { kind: 'poll', observation }, ports, options)
  return recorded ?? (await quarantine(tx, poll, 'parcel_full'))
}

async function recordPush(tx: WriteTx, push: IncomingPush, ports: RecordPorts, options: RecordOptions): Promise<Recorded> {
  const { reading } = push
  if (!reading.ok) return await quarantine(tx, push, reading.reason)
  const { observation } = reading
  const eventAtMs = observation.sighting.instant.atMs
  if (eventAtMs < push.receivedAtMs - options.historyRetentionMs) {
    await tx.saveInbox({ push, state: 'expired', reason: null, parcelId: null })
    return { outcome: { kind: 'expired' }, touched: [] }
  }

  const subject = recallLone(tx, observation.trackingIds) ?? (await findOrJoin(tx, observation, push.receivedAtMs))
  if (subject === null) return await quarantine(tx, push, 'parcel_full')
  const { parcel, ...found } = subject
  const inboxId = await tx.saveInbox({
    push,
    state: 'recorded',
    reason: null,
    parcelId: parcel.parcelId,
  })
  if (inboxId === null) return { outcome: { kind: 'duplicate' }, touched: [] }
  const now = {
    ...parcel,
    ...reactivate(parcel, push.receivedAtMs),
    firstPushedAtMs: parcel.firstPushedAtMs === null ? eventAtMs : Math.min(parcel.firstPushedAtMs, eventAtMs),
    lastSeenAtMs: Math.max(parcel.lastSeenAtMs ?? 0, push.receivedAtMs),
  }
  const recorded = await merge(tx, { now, ...found }, { kind: 'push', observation, inboxId }, ports, options)
  if (recorded !== null) return recorded
  await tx.deleteInbox(inboxId)
  return await quarantine(tx, push, 'parcel_full')
}

async function quarantine(tx: WriteTx, incoming: Incoming, reason: QuarantineReason): Promise<Recorded> {
  if (incoming.kind === 'push') {
    const inboxId = await tx.saveInbox({ push: incoming, state: 'quarantined', reason, parcelId: null })
    if (inboxId === null) return { outcome: { kind: 'duplicate' }, touched: [] }
  }
  if (reason === 'parcel_full') await flagFull(tx, incoming)
  return { outcome: { kind: 'quarantined', reason }, touched: [] }
}

/** Of parcels that do not fit into one, the one that would have gone on. */
async function flagFull(tx: WriteTx, incoming: Incoming): Promise<void> {
  const observation = incoming.kind === 'poll' ? incoming.observation : incoming.reading.ok ? incoming.reading.observation : null
  const [oldest] = observation === null ? [] : parcelsOf(await tx.findIdentifiers(identifiersOf(observation)))
  const parcel = oldest === undefined ? null : await tx.loadParcel(oldest)
  if (parcel?.full === false) tx.saveParcel({ ...parcel, full: true })
}

/** All that an observation names a parcel by. */
function identifiersOf(observation: PushObservation | PollObservation): readonly string[] {
  return observation.kind === 'push' ? observation.trackingIds : [...new Set([observation.asked, ...observation.trackingIds])]
}

/** The oldest first. */
function parcelsOf(known: readonly IdentifierState[]): readonly number[] {
  return [...new Set(known.map(({ parcelId }) => parcelId))].sort((a, b) => a - b)
}

interface Found {
  readonly parcel: ParcelState
  readonly touched: readonly number[]
  /** Its identifiers, or tracking ids, that it had not: to be saved with what names them. */
  readonly newNames: readonly IdentifierState[]
  /** All that is kept of it, if it was made of several, which fit into one with what is observed; null: it was not. */
  readonly sightings: readonly KeptSighting[] | null
}

/** The parcel that an observation is about: known, new, or several that proved to be one (DOMAIN 1.3, 1.4). Null: they do not fit into one. */
async function findOrJoin(tx: WriteTx, observation: PushObservation | PollObservation, nowMs: number): Promise<Found | null> {
  const values = identifiersOf(observation)
  const known = new Map((await tx.findIdentifiers(values)).map((identifier) => [identifier.value, identifier]))
  const touched = parcelsOf([...known.values()])
  const joined = touched.length > 1 ? await joinParcels(tx, touched, observation, nowMs) : null
  if (touched.length > 1 && joined === null) return null
  const [only] = touched
  const parcel = joined?.parcel ?? (only === undefined ? await tx.createParcel(nowMs) : await tx.loadParcel(only))
  const { parcelId } = parcel
  const newNames: IdentifierState[] = []
  for (const value of values) {
    const before = known.get(value)
    const isTrackingId = before?.isTrackingId === true || observation.trackingIds.includes(value)
    if (before?.isTrackingId !== isTrackingId) newNames.push({ value, parcelId, isTrackingId })
  }
  return { parcel, touched: only === undefined ? [parcelId] : touched, newNames, sightings: joined?.sightings ?? null }
}

/** The same for nearly every push, without a look into the store: it names one tracking id, of a parcel that was written just before. */
function recallLone(tx: WriteTx, [only, ...others]: readonly string[]): Found | null {
  const parcel = only === undefined || others.length > 0 ? null : tx.recallParcel(only)
  return parcel === null ? null : { parcel, touched: [parcel.parcelId], newNames: [], sightings: null }
}

/** The parcel an observation is about, as the observation leaves it, and all whose answers may change. */
interface Subject extends Omit<Found, 'parcel'> {
  readonly now: ParcelState
}

/**
 * Adds what an observation says to what is known, and writes down what that changed. Null: a parcel cannot hold it (DOMAIN 1.6), and nothing
 * was written.
 */
async function merge(tx: WriteTx, subject: Subject, source: Source, ports: RecordPorts, options: RecordOptions): Promise<Recorded | null> {
  const { now: parcel, touched, newNames } = subject
  const { observation } = source
  const nowMs = ports.clock.now()
  const second = observation.kind === 'push' && touched.length === 1 ? Math.floor(observation.sighting.instant.atMs / 1000) : null
  const before = subject.sightings ?? (second !== null && isNewest(parcel, second) ? [] : await tx.loadSightings(parcel.parcelId, second))
  // Oldest first: what happened first is numbered first, and relayed first.
  const { kept, changed } = mergeSightings(before, sightingsOf(observation).toReversed(), tx.nextSequence)
  const entriesBefore = deriveEntries(before)
  const entries = changed.length === 0 ? entriesBefore : deriveEntries(kept)
  const entryCount = second === null ? entries.length : parcel.entryCount + entries.length - entriesBefore.length
  if (subject.sightings === null && entryCount > ENTRIES_MAX && entries.length > entriesBefore.length) return null

  for (const name of newNames) tx.saveIdentifier(name)
  const changes = diffEntries(entriesBefore, entries)
  // A change of an entry, and a join, tell of the whole parcel besides: only without them has it to be told on its own.
  const untold = changes.length === 0 && touched.length === 1
  const frame = untold && (observation.kind === 'poll' || changed.length > 0) ? await envelopeOf(tx, parcel.parcelId, entriesBefore) : null
  const events = await planEvents(tx, { changes, entries, parcel, source })
  for (const one of withTold(changed, events)) await tx.saveSighting(parcel.parcelId, one)
  if (observation.kind === 'poll') await keepAnswer(tx, parcel.parcelId, observation)
  const queued = await appendEvents(tx, events, nowMs)
  if (observation.kind === 'poll') await expectPushes(tx, events, nowMs, options.missedPushGraceMs)
  const reframed = frame !== null && frame !== (await envelopeOf(tx, parcel.parcelId, entries))
  if (untold && (newNames.length > 0 || reframed)) appendParcelUpdate(tx, parcel.parcelId)

  for (const lesson of scanSamplesOf(parcel, observation, entries)) ports.learn(lesson)
  if (observation.kind === 'poll') for (const { kind, entry } of changes) if (kind === 'entry') ports.found(entry.atMs)
  if (observation.kind === 'poll') tx.releasePoll(parcel.parcelId)
  const latest = newestOf(parcel, entries, second) ?? (await findLatest(tx, parcel, entries, second))
  const merged = {
    ...parcel,
    entryCount,
    latest,
    ...(observation.kind === 'poll' ? afterPoll(parcel, Math.min(observation.askedAtMs, nowMs)) : null),
  }
  const scheduled = await schedule(tx, merged, ports, options)
  tx.saveParcel(observation.kind === 'push' ? noLater(scheduled, parcel.nextPollAtMs) : scheduled)
  const newEntries = changes.filter(({ kind }) => kind === 'entry').length
  const remark = anomalyOf(observation, entryCount, nowMs)
  const recorded = { kind: 'recorded', parcelId: parcel.parcelId, changed: changes.length > 0, newEntries, queued } as const
  return { outcome: remark === null ? recorded : { ...recorded, remark }, touched }
}

/** The sightings that are to be saved, each once: those that changed, and those that are told of. */
function withTold(changed: readonly KeptSighting[], events: readonly FeedAddition[]): Iterable<KeptSighting> {
  const bySequence = new Map(changed.map((kept) => [kept.sequence, kept]))
  for (const { told } of events) if (told !== null) bySequence.set(told.sequence, told)
  return bySequence.values()
}

/** The clock may have been put back while the carrier was asked: a check in the future would put the next one off by as much. */
function afterPoll(parcel: ParcelState, checkedAtMs: number): Pick<ParcelState, 'lastSeenAtMs' | 'checkedAtMs' | 'failures'> {
  return {
    lastSeenAtMs: Math.max(parcel.lastSeenAtMs ?? 0, checkedAtMs),
    checkedAtMs: Math.max(parcel.checkedAtMs ?? 0, checkedAtMs),
    failures: 0,
  }
}

/** Whether a second is later than all that is known of a parcel. */
function isNewest({ latest }: ParcelState, second: number): boolean {
  return latest === null || second > Math.floor(latest.atMs / 1000)
}

/** The first of the history, where what a push touched tells: the entries of one second. Null: it does not. */
function newestOf(parcel: ParcelState, touchedEntries: readonly Entry[], second: number | null): ParcelState['latest'] {
  const [only, ...more] = touchedEntries
  return second !== null && only !== undefined && more.length === 0 && isNewest(parcel, second) ? latestOf(only) : null
}

/** The first of the history. A push touches one second: only when that is the newest one does the whole history have to be looked at. */
async function findLatest(
  tx: WriteTx,
  parcel: ParcelState,
  touchedEntries: readonly Entry[],
  second: number | null,
): Promise<ParcelState['latest']> {
  if (second !== null && parcel.latest !== null && second < Math.floor(parcel.latest.atMs / 1000)) return parcel.latest
  const entries = second === null ? touchedEntries : deriveEntries(await tx.loadSightings(parcel.parcelId, null))
  const [latest] = orderHistory(entries, instantsTie(entries) ? await tx.loadOrder(parcel.parcelId) : [])
  return latest === undefined ? null : latestOf(latest)
}

function latestOf(entry: Entry): NonNullable<ParcelState['latest']> {
  return { status: entry.status, atMs: entry.atMs }
}
