import type { OperatorEvent } from '../../domain/delivery/operator-event.ts'
import { isUnderstood } from '../../domain/history/observation.ts'
import type { BatchReport, Incoming, RecordRules } from '../../domain/history/recording.ts'
import { notAhead } from '../../domain/instant.ts'
import {
  type CadenceFacts,
  type CadenceModel,
  type CarrierSilence,
  encodeSilence,
  nextPoll,
  noSilence,
  parseSilence,
} from '../../domain/polling/cadence.ts'
import {
  encodePushRecord,
  encodeScanRate,
  type MissedPushes,
  type PushRecord,
  parsePushRecord,
  parseScanRate,
  resumeChannel,
} from '../../domain/polling/model-codec.ts'
import type { PollFailure, PushChannelView, PushHealthUpdate } from '../../domain/polling/poll.ts'
import {
  areMisread,
  estimatePushLoss,
  newestPushes,
  newPushChannel,
  type PushChannel,
  probationOf,
  unpushedSinceLast,
} from '../../domain/polling/push-health.ts'
import { emptyScanRate, type ScanRate } from '../../domain/polling/scan-rate.ts'
import { listNewestPushes } from '../../store/ingest/inbox-lists.ts'
import { saveSetting } from '../../store/settings.ts'
import type { Transactions } from '../../store/write-store.ts'
import { recordOperatorEvent } from '../audit.tx.ts'
import type { Clock, Log } from '../ports.ts'
import type { CarrierModel, CarrierModelKeeper } from './carrier-model.ts'
import type { createNotePollOutcome, createSettleMissedPushes } from './schedule-poll.tx.ts'

const SCAN_RATE = 'rhythm'
const PUSHES = 'push-channel'
const SILENCE = 'carrier-silence'
/** The scan rate is learnt over weeks, so a kill that loses the last hour does little harm. */
const SCAN_RATE_EVERY_MS = 3_600_000
const PUSHES_EVERY_MS = 60_000
/** How many of the newest pushes are searched for the last push with news. */
const NEWEST_MAX = 200

export interface ModelCheckpointPorts {
  readonly log: Pick<Log, 'error'>
  readonly store: Transactions
  readonly clock: { now(): number }
  /** When the store was last restored from a backup, epoch milliseconds; null or absent: never. */
  readonly restoredAtMs?: number | null
}

/** Saves what was learnt about the carrier. Notifies operators when its pushes become unreliable or are reliable again. */
export type ModelCheckpoint = Awaited<ReturnType<typeof openModelCheckpoint>>

/** Opens the checkpoint. If a saved value cannot be read, logs this, and the relay learns the value again. */
export async function openModelCheckpoint(ports: ModelCheckpointPorts) {
  const { clock, log, restoredAtMs = null } = ports
  let saved = await loadSaved(ports)
  let from = modelOf(saved, clock.now())
  let missed = missedIn(saved, clock.now())
  let told = toldIn(saved)
  let kept = { ...from, missed, scanRateAtMs: clock.now(), pushesAtMs: clock.now() }
  let keptSilence = encodeSilence(from.silence, clock.now())
  let isFailing = false

  /** Returns when the last push came. Until this run gets a push, the channel's `lastPushAtMs` is the start of this run (`resumeChannel`). */
  const lastPushOf = ({ lastPushAtMs }: PushChannel) => (lastPushAtMs === from.channel.lastPushAtMs ? saved.lastPushAtMs : lastPushAtMs)

  async function keepPushes(channel: PushChannel, nowMs: number): Promise<boolean> {
    const next = tellOf(told, channel)
    const news = newsOf(told, next)
    await savePushes(ports.store, { channel: { ...channel, lastPushAtMs: lastPushOf(channel) }, missed, ...next }, news, nowMs)
    told = next
    kept = { ...kept, channel, missed, pushesAtMs: nowMs }
    return news !== null
  }

  /** Saves the silence only if its text has changed: when an outage has lasted an hour, and when it ends. */
  async function keepSilence(silence: CarrierSilence, nowMs: number): Promise<void> {
    const text = encodeSilence(silence, nowMs)
    if (text === keptSilence) return
    await save(ports.store, SILENCE, text)
    keptSilence = text
  }

  async function keepAll({ scanRate: learnt, channel, silence }: CarrierModel, all: boolean): Promise<boolean> {
    const nowMs = clock.now()
    await keepSilence(silence, nowMs)
    // The absolute value, in case the clock was put back.
    const isDue = (sinceMs: number, everyMs: number) => all || Math.abs(nowMs - sinceMs) >= everyMs
    if (learnt !== kept.scanRate && isDue(kept.scanRateAtMs, SCAN_RATE_EVERY_MS)) {
      await save(ports.store, SCAN_RATE, encodeScanRate(learnt))
      kept = { ...kept, scanRate: learnt, scanRateAtMs: nowMs }
    }
    const isPressing = channel.health !== kept.channel.health || missed !== kept.missed
    if (!isPressing && (channel === kept.channel || !isDue(kept.pushesAtMs, PUSHES_EVERY_MS))) return false
    return await keepPushes(channel, nowMs)
  }

  return {
    /** The model that the last run saved. */
    from,
    /**
     * Reads the model that another replica has saved. `resume`: this replica becomes the poller and continues from the model, as after a
     * restart. Rejects if the store fails.
     */
    async reload({ resume }: { readonly resume: boolean }): Promise<CarrierModel> {
      saved = await loadSaved(ports)
      from = resume ? modelOf(saved, clock.now()) : plainModel(saved)
      missed = missedIn(saved, clock.now())
      told = toldIn(saved)
      kept = { ...kept, ...from, missed }
      keptSilence = encodeSilence(from.silence, clock.now())
      return from
    },
    countMissed(count: number) {
      if (count > 0) missed = { ...missed, count: missed.count + count, lastFoundAtMs: clock.now() }
    },
    /** `graceMs`: how late a push may be before it counts as missed. */
    view({ channel }: CarrierModel, graceMs: number): PushChannelView {
      const { health, silence, lastSilence, misreadAtMs } = channel
      const lastPushAtMs = lastPushOf(channel)
      return {
        health,
        loss: estimatePushLoss(channel),
        lastPushAtMs,
        restoredAtMs: restoredAtMs !== null && restoredAtMs > (lastPushAtMs ?? 0) ? restoredAtMs : null,
        missedSincePush: unpushedSinceLast(channel),
        silence,
        lastSilence,
        probation: probationOf(channel, graceMs),
        newest: { ...newestPushes(channel), areTooMany: areMisread(channel), misreadAtMs },
        missed,
      }
    },
    /**
     * Saves changes now and then, but at once if operators are notified of them. `all`: saves everything now. Never throws for a failure of the
     * store.
     */
    async keep(learnt: CarrierModel, { all }: { readonly all: boolean } = { all: false }): Promise<PushHealthUpdate> {
      let eventQueued = false
      try {
        eventQueued = await keepAll(learnt, all)
        isFailing = false
      } catch (err) {
        // At a stop this is no error: the next run begins with what was saved before, and learns the rest again.
        if (!isFailing && !all) log.error({ err }, 'what was learnt about the carrier cannot be saved')
        isFailing = true
      }
      return { health: learnt.channel.health, eventQueued }
    },
  }
}

type Told = Pick<PushRecord, 'toldSilent' | 'toldLossy'>
type PushNews = Extract<OperatorEvent, { readonly lastPushAt: unknown }>['event']

function toldIn({ record }: Saved): Told {
  return { toldSilent: record?.toldSilent ?? false, toldLossy: record?.toldLossy ?? false }
}

/**
 * Decides about which troubles of this channel operators are notified. A trouble is reported once, and again only if pushes were
 * reliable in between. Quarantined pushes are reported by other events.
 */
function tellOf({ toldSilent, toldLossy }: Told, channel: PushChannel): Told {
  if (channel.health === 'healthy') return { toldSilent: false, toldLossy: false }
  const isLossy = channel.health === 'lossy' && channel.trial === null && !areMisread(channel)
  return { toldSilent: toldSilent || channel.health === 'silent', toldLossy: toldLossy || isLossy }
}

/** Null: there is nothing to report. After pushes were silent, nothing is reported until they are reliable again. */
function newsOf(before: Told, after: Told): PushNews | null {
  if (after.toldSilent !== before.toldSilent) return after.toldSilent ? 'pushes_silent' : 'pushes_trusted'
  if (after.toldSilent || after.toldLossy === before.toldLossy) return null
  return after.toldLossy ? 'pushes_lossy' : 'pushes_trusted'
}

interface Saved {
  readonly scanRate: ScanRate | null
  readonly record: PushRecord | null
  readonly silence: CarrierSilence | null
  /** When the last push with news came; null: never. Also read from the inbox, because a kill may lose the last minute of `record`. */
  readonly lastPushAtMs: number | null
}

async function loadSaved(ports: ModelCheckpointPorts): Promise<Saved> {
  const scanRate = await load(ports, SCAN_RATE, parseScanRate)
  const record = await load(ports, PUSHES, parsePushRecord)
  const recordedAtMs = record?.channel.lastPushAtMs ?? null
  const pushes = await ports.store.transaction((tx) => listNewestPushes(tx, NEWEST_MAX))
  const newest = pushes.find(({ state }) => state === 'recorded')
  return {
    scanRate,
    record,
    silence: await load(ports, SILENCE, parseSilence),
    lastPushAtMs: newest === undefined ? recordedAtMs : Math.max(notAhead(newest.receivedAtMs, ports.clock.now()), recordedAtMs ?? 0),
  }
}

function plainModel({ scanRate, record, silence }: Saved): CarrierModel {
  return { scanRate: scanRate ?? emptyScanRate, channel: record?.channel ?? newPushChannel, silence: silence ?? noSilence }
}

/** Returns the saved model, adapted so that a new run can continue from it. */
function modelOf(saved: Saved, nowMs: number): CarrierModel {
  const { channel, ...rest } = plainModel(saved)
  return { ...rest, channel: resumeChannel(channel, nowMs) }
}

function missedIn({ record }: Saved, nowMs: number): MissedPushes {
  return record?.missed ?? { count: 0, sinceMs: nowMs, lastFoundAtMs: null }
}

async function load<T>({ store, log }: ModelCheckpointPorts, name: string, parse: (text: string) => T | null): Promise<T | null> {
  const kept = await store.transaction((tx) => tx.loadSetting(name))
  const value = kept === null ? null : parse(textOf(kept))
  if (kept !== null && value === null) log.error({ setting: name }, 'what was learnt before cannot be read: it is learnt again')
  return value
}

/** A value that was written by hand may not be bytes. */
function textOf(kept: unknown): string {
  return kept instanceof Uint8Array ? new TextDecoder().decode(kept) : String(kept)
}

async function save(store: Transactions, name: string, text: string): Promise<void> {
  await store.transaction((tx) => saveSetting(tx, name, new TextEncoder().encode(text)), { ofRole: 'poller' })
}

/** Saves the record and the event, if any, in one transaction. With two transactions, a kill in between might lose or repeat the event. */
async function savePushes(store: Transactions, record: PushRecord, news: PushNews | null, nowMs: number): Promise<void> {
  const { lastPushAtMs } = record.channel
  const lastPushAt = lastPushAtMs === null ? null : new Date(lastPushAtMs).toISOString()
  await store.transaction(
    async (tx) => {
      if (news !== null) await recordOperatorEvent(tx, { event: news, lastPushAt }, nowMs)
      await saveSetting(tx, PUSHES, new TextEncoder().encode(encodePushRecord(record)))
    },
    { ofRole: 'poller' },
  )
}

interface ModelVerbsPorts {
  readonly model: CarrierModelKeeper
  readonly currentModel: () => CadenceModel
  readonly checkpoint: ModelCheckpoint
  readonly clock: Pick<Clock, 'now'>
  /** Moves polls that come too late for what is now known of pushes. */
  readonly reschedulePolls: (nowMs: number) => Promise<void>
}

interface Teaching extends Pick<ReturnType<typeof createNotePollOutcome>, 'notePollFailure'> {
  readonly record: (batch: readonly Incoming[]) => Promise<BatchReport>
  readonly settleMissedPushes: ReturnType<typeof createSettleMissedPushes>
}

/** Makes the verbs that ask the model of the carrier, and lets it learn from `verbs`. */
export function createModelVerbs(
  { model, currentModel, checkpoint, clock, reschedulePolls }: ModelVerbsPorts,
  verbs: Teaching,
  { cadence, missedPushGraceMs }: RecordRules,
) {
  return {
    /**
     * Records a batch in one transaction. If this resolves, every observation is durable. If it rejects, no observation was recorded. An
     * observation that cannot be recorded is quarantined, and the others are recorded.
     */
    async record(batch: readonly Incoming[]) {
      // Any answer shows that the carrier is no longer silent. The model must know this before `record` schedules the next polls.
      if (batch.some(({ kind }) => kind === 'poll')) model.answered(clock.now())
      const report = await verbs.record(batch)
      noteArrivals(model, batch, report)
      return report
    },
    /** Saves that a poll failed, and schedules the next poll. */
    async notePollFailure(failure: PollFailure) {
      if (failure.kind === 'unavailable') model.unanswered(failure.atMs)
      if (failure.failsSinceMs !== undefined) model.unanswered(failure.failsSinceMs)
      if (failure.kind === 'unknown') model.answered(failure.atMs)
      await verbs.notePollFailure(failure)
    },
    /** Decides, for polled entries whose grace period is over, whether their pushes were missed (DOMAIN 6.6). Returns the missed pushes. */
    async settleMissedPushes(nowMs: number) {
      const missed = await verbs.settleMissedPushes(nowMs)
      for (const { eventAtMs } of missed) model.missed({ eventAtMs, nowMs })
      checkpoint.countMissed(missed.length)
      model.review(missedPushGraceMs)
      await reschedulePolls(nowMs)
      return missed
    },
    /** Returns when and why a parcel is polled next by the present model, or why it is not polled. */
    planPoll: async (facts: CadenceFacts) => nextPoll(facts, currentModel(), cadence),
    pushChannel: async () => checkpoint.view(model.learnt(), missedPushGraceMs),
    /** Saves what was learnt about the carrier, if that is due. Notifies operators when pushes become unreliable or are reliable again. */
    checkpointModel: () => checkpoint.keep(model.learnt()),
  }
}

/**
 * Notes what the observations of a batch show about the push channel. A recorded push shows that the channel works, even if a poll found the
 * same entry earlier. A duplicate of a push does not show that.
 */
function noteArrivals(model: CarrierModelKeeper, batch: readonly Incoming[], { outcomes }: BatchReport): void {
  const [pushed, misread, polled]: [number[], number[], number[]] = [[], [], []]
  for (const [at, incoming] of batch.entries()) {
    const outcome = outcomes[at]
    if (incoming.kind === 'poll') polled.push(incoming.observation.askedAtMs)
    else if (outcome?.kind === 'recorded') pushed.push(incoming.receivedAtMs)
    else if (outcome?.kind === 'quarantined' && !isUnderstood(outcome.reason)) misread.push(incoming.receivedAtMs)
  }
  if (pushed.length > 0) model.pushed(Math.max(...pushed), pushed.length)
  if (misread.length > 0) model.misread(Math.max(...misread), misread.length)
  if (polled.length > 0) model.polled(Math.max(...polled))
}
