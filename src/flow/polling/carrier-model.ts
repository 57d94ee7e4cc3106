import type { CadenceModel } from '../../domain/polling/cadence.ts'
import {
  afterMiss,
  afterPush,
  afterUnpushedEntries,
  estimatePushLoss,
  newPushChannel,
  type PushChannel,
} from '../../domain/polling/push-health.ts'
import { emptyScanRate, learnScanRate, type ScanRate, type ScanSample } from '../../domain/polling/scan-rate.ts'

/** What is learnt of the carrier as a whole: how it works through the week, and whether its pushes come. */
export interface CarrierModel {
  readonly scanRate: ScanRate
  readonly channel: PushChannel
}

export interface CarrierModelKeeper {
  current(): CadenceModel
  learn(sample: ScanSample): void
  /** `count` pushes came by this time. */
  pushed(atMs: number, count: number): void
  missed(miss: { readonly eventAtMs: number; readonly nowMs: number }): void
  /** A poll brought an entry that nobody knew. */
  foundByPoll(eventAtMs: number): void
  /** Looks whether what polls found has been waiting for its push for longer than the grace. */
  review(graceMs: number): void
  learnt(): CarrierModel
  /** Learns what still waits to be learnt: there may be no later. */
  settle(): void
}

/** Lessons are learnt many at a time: learning makes all estimates anew, for which every push waits some milliseconds. */
const LEARN_EVERY_MS = 15 * 60_000
/** When so many wait they are learnt sooner, but not at once again: so many say enough, and what comes until then is let go. */
const WAITING_MAX = 5000
const LEARN_MANY_EVERY_MS = 60_000
/** More say nothing more. */
const UNPUSHED_MAX = 1000

/** Keeps what the cadence looks at, told of everything that bears on it. */
export function createCarrierModelKeeper(
  clock: { now(): number },
  from: CarrierModel = { scanRate: emptyScanRate, channel: newPushChannel },
): CarrierModelKeeper {
  let { scanRate, channel } = from
  let scanSamples: ScanSample[] = []
  /** When what polls found and no push has brought yet happened, as far as it was after the last push. */
  let unpushed: number[] = []
  let learntAtMs = Number.NEGATIVE_INFINITY

  function settle(): void {
    const nowMs = clock.now()
    if (scanSamples.length === 0) return
    scanRate = learnScanRate(scanRate, scanSamples, nowMs)
    learntAtMs = nowMs
    scanSamples = []
  }

  return {
    current() {
      // A clock that was put back must not stop the learning.
      const restedMs = Math.abs(clock.now() - learntAtMs)
      if (restedMs >= LEARN_EVERY_MS || (scanSamples.length >= WAITING_MAX && restedMs >= LEARN_MANY_EVERY_MS)) settle()
      return { scanRate, pushHealth: channel.health, pushLoss: estimatePushLoss(channel) }
    },
    learn(sample) {
      if (scanSamples.length < WAITING_MAX) scanSamples.push(sample)
    },
    pushed(atMs, count) {
      channel = afterPush(channel, atMs, count)
    },
    missed(miss) {
      channel = afterMiss(channel, miss)
    },
    foundByPoll(eventAtMs) {
      if (unpushed.length < UNPUSHED_MAX && eventAtMs > (channel.lastPushAtMs ?? Number.POSITIVE_INFINITY)) unpushed.push(eventAtMs)
    },
    review(graceMs) {
      const settledToMs = clock.now() - graceMs
      unpushed = unpushed.filter((eventAtMs) => eventAtMs > (channel.lastPushAtMs ?? 0))
      const overdue = unpushed.filter((eventAtMs) => eventAtMs <= settledToMs).length
      channel = afterUnpushedEntries(channel, { found: unpushed.length, overdue, settledToMs })
    },
    learnt: () => ({ scanRate, channel }),
    settle,
  }
}
