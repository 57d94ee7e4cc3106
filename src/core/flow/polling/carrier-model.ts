import { notAhead } from '../../domain/instant.ts'
import {
  afterAnswer,
  afterNoAnswer,
  type CadenceModel,
  type CarrierSilence,
  clampSilenceToClock,
  noSilence,
} from '../../domain/polling/cadence.ts'
import {
  afterMisread,
  afterMiss,
  afterPoll,
  afterPush,
  afterTrial,
  afterUnpushedEntries,
  clampChannelToClock,
  estimatePushLoss,
  newPushChannel,
  type PushChannel,
} from '../../domain/polling/push-health.ts'
import { emptyScanRate, learnScanRate, type ScanRate, type ScanSample } from '../../domain/polling/scan-rate.ts'

/** The facts learnt about the carrier: how it scans over the week, how reliable its pushes are, and when it did not answer. */
export interface CarrierModel {
  readonly scanRate: ScanRate
  readonly channel: PushChannel
  readonly silence: CarrierSilence
}

export type CarrierModelKeeper = ReturnType<typeof createCarrierModelKeeper>

/** Samples are collected for this long and learnt together, because each learning delays pushes by some milliseconds. */
const LEARN_EVERY_MS = 15 * 60_000
/** When this many samples wait, they are learnt earlier, but at most every `LEARN_MANY_EVERY_MS`. Until then, more samples are dropped. */
const WAITING_MAX = 5000
const LEARN_MANY_EVERY_MS = 60_000
/** At most this many entries without a push are kept, because more would not change the conclusion about the push channel. */
const UNPUSHED_MAX = 1000

export function createCarrierModelKeeper(
  clock: { now(): number },
  from: CarrierModel = { scanRate: emptyScanRate, channel: newPushChannel, silence: noSilence },
) {
  let { scanRate, channel, silence } = from
  let scanSamples: ScanSample[] = []
  /** The event times of entries that polls have found and no push has reported. All are later than the last push. */
  let unpushed: number[] = []
  let learntAtMs = Number.NEGATIVE_INFINITY

  /** Learns the samples that were not learnt yet. */
  function settle(): void {
    const nowMs = clock.now()
    if (scanSamples.length === 0) return
    scanRate = learnScanRate(scanRate, scanSamples, nowMs)
    learntAtMs = nowMs
    scanSamples = []
  }

  function clampToClock(): void {
    const nowMs = clock.now()
    channel = clampChannelToClock(channel, nowMs)
    silence = clampSilenceToClock(silence, nowMs)
    unpushed = unpushed.map((eventAtMs) => notAhead(eventAtMs, nowMs))
  }

  return {
    current(): CadenceModel {
      // The absolute value, so that samples are learnt even if the clock was put back.
      const restedMs = Math.abs(clock.now() - learntAtMs)
      if (restedMs >= LEARN_EVERY_MS || (scanSamples.length >= WAITING_MAX && restedMs >= LEARN_MANY_EVERY_MS)) settle()
      return { scanRate, pushHealth: channel.health, pushLoss: estimatePushLoss(channel), silence }
    },
    learn(sample: ScanSample) {
      if (scanSamples.length < WAITING_MAX) scanSamples.push(sample)
    },
    /** Notes that `count` pushes arrived at about this time. */
    pushed(atMs: number, count: number) {
      channel = afterPush(channel, atMs, count)
    },
    /** Notes that `count` pushes were quarantined at about this time because they were not understood. */
    misread(atMs: number, count: number) {
      channel = afterMisread(channel, atMs, count)
    },
    missed(miss: { readonly eventAtMs: number; readonly nowMs: number }) {
      channel = afterMiss(channel, miss)
    },
    /** Notes the event time, epoch milliseconds, of an entry that a poll reported before any push. */
    foundByPoll(eventAtMs: number) {
      if (unpushed.length < UNPUSHED_MAX && eventAtMs > (channel.lastPushAtMs ?? Number.POSITIVE_INFINITY)) unpushed.push(eventAtMs)
    },
    answered(atMs: number) {
      silence = afterAnswer(silence, atMs)
    },
    /** Notes that a poll at this time brought a history. */
    polled(askedAtMs: number) {
      channel = afterPoll(channel, askedAtMs)
    },
    unanswered(atMs: number) {
      silence = afterNoAnswer(silence, atMs)
    },
    /** Judges again how reliable pushes are. An entry found by a poll counts against them if no push has reported it within the grace period. */
    review(graceMs: number) {
      clampToClock()
      const settledToMs = clock.now() - graceMs
      unpushed = unpushed.filter((eventAtMs) => eventAtMs > (channel.lastPushAtMs ?? 0))
      const overdue = unpushed.filter((eventAtMs) => eventAtMs <= settledToMs).length
      const nowMs = clock.now()
      channel = afterTrial(afterUnpushedEntries(channel, { found: unpushed.length, overdue, settledToMs, nowMs }), { nowMs, graceMs })
    },
    learnt: (): CarrierModel => ({ scanRate, channel, silence }),
    /** Drops samples that were not learnt yet. */
    replace(model: CarrierModel) {
      ;({ scanRate, channel, silence } = model)
      scanSamples = []
      unpushed = []
    },
    settle,
  }
}
