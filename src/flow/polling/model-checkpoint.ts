import type { OperatorEvent } from '../../domain/delivery/operator-event.ts'
import {
  encodePushRecord,
  encodeScanRate,
  type MissedPushes,
  type PushRecord,
  parsePushRecord,
  parseScanRate,
  resumeChannel,
} from '../../domain/polling/model-codec.ts'
import type { PushChannelView, PushHealthUpdate } from '../../domain/polling/poll.ts'
import { estimatePushLoss, newPushChannel, type PushChannel, type PushHealth } from '../../domain/polling/push-health.ts'
import { emptyScanRate } from '../../domain/polling/scan-rate.ts'
import { queueOperatorEvent } from '../delivery/operator-events.tx.ts'
import type { Log } from '../ports.ts'
import type { WriteStore } from '../write-store.ts'
import type { CarrierModel } from './carrier-model.ts'

const SCAN_RATE = 'rhythm'
const PUSHES = 'push-channel'
/** A kill forgets no more than this of what weeks have taught. */
const SCAN_RATE_EVERY_MS = 3_600_000
const PUSHES_EVERY_MS = 60_000

export interface ModelCheckpointPorts {
  readonly store: WriteStore
  readonly clock: { now(): number }
  readonly log: Pick<Log, 'error'>
}

/** Keeps what is learnt of the carrier over restarts and kills, and tells operators when its pushes fall silent or are trusted again. */
export interface ModelCheckpoint {
  /** What the run before left. */
  readonly from: CarrierModel
  countMissed(count: number): void
  view(learnt: CarrierModel): PushChannelView
  /** Writes down what changed as often as is worth it, and at once what operators are told; `all`: now. Never throws for the store. */
  keep(learnt: CarrierModel, how?: { readonly all: boolean }): Promise<PushHealthUpdate>
}

/** What cannot be read is learnt anew, and the log says so. */
export async function openModelCheckpoint(ports: ModelCheckpointPorts): Promise<ModelCheckpoint> {
  const { clock, log } = ports
  const scanRate = await load(ports, SCAN_RATE, parseScanRate)
  const record = await load(ports, PUSHES, parsePushRecord)
  const from = { scanRate: scanRate ?? emptyScanRate, channel: resumeChannel(record?.channel ?? newPushChannel, clock.now()) }
  let missed: MissedPushes = record?.missed ?? { count: 0, sinceMs: clock.now(), lastFoundAtMs: null }
  let toldSilent = record?.toldSilent ?? false
  let kept = { ...from, missed, scanRateAtMs: clock.now(), pushesAtMs: clock.now() }
  let isFailing = false

  /** The channel takes the start of this run for its last push (`resumeChannel`): it came before. */
  const lastPushOf = ({ lastPushAtMs }: PushChannel) =>
    record !== null && lastPushAtMs === from.channel.lastPushAtMs ? record.channel.lastPushAtMs : lastPushAtMs

  async function keepPushes(channel: PushChannel, nowMs: number): Promise<boolean> {
    const eventQueued = {
      channel: { ...channel, lastPushAtMs: lastPushOf(channel) },
      missed,
      toldSilent: isSilenceReported(toldSilent, channel.health),
    }
    const isNews = eventQueued.toldSilent !== toldSilent
    await savePushes(ports.store, eventQueued, isNews, nowMs)
    toldSilent = eventQueued.toldSilent
    kept = { ...kept, channel, missed, pushesAtMs: nowMs }
    return isNews
  }

  async function keepAll({ scanRate: learnt, channel }: CarrierModel, all: boolean): Promise<boolean> {
    const nowMs = clock.now()
    // A clock that was put back must not stop the keeping.
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
    from,
    countMissed(count) {
      if (count > 0) missed = { ...missed, count: missed.count + count, lastFoundAtMs: clock.now() }
    },
    view({ channel }) {
      const { health, missedSincePush } = channel
      return { health, loss: estimatePushLoss(channel), lastPushAtMs: lastPushOf(channel), missedSincePush, missed }
    },
    async keep(learnt, { all } = { all: false }) {
      let eventQueued = false
      try {
        eventQueued = await keepAll(learnt, all)
        isFailing = false
      } catch (err) {
        if (!isFailing) log.error({ err }, 'what was learnt of the carrier cannot be written down')
        isFailing = true
      }
      return { health: learnt.channel.health, eventQueued }
    },
  }
}

/** Silence is told once, and no more until pushes were trusted again. */
function isSilenceReported(before: boolean, health: PushHealth): boolean {
  return health === 'silent' || (before && health !== 'healthy')
}

async function load<T>({ store, log }: ModelCheckpointPorts, name: string, parse: (text: string) => T | null): Promise<T | null> {
  const kept = await store.transaction((tx) => tx.loadSetting(name))
  const value = kept === null ? null : parse(textOf(kept))
  if (kept !== null && value === null) log.error({ setting: name }, 'what was learnt before cannot be read: it is learnt anew')
  return value
}

/** Whatever another hand put there. */
function textOf(kept: unknown): string {
  return kept instanceof Uint8Array ? new TextDecoder().decode(kept) : String(kept)
}

async function save(store: WriteStore, name: string, text: string): Promise<void> {
  await store.transaction((tx) => tx.saveSetting(name, new TextEncoder().encode(text)))
}

/** With the event, if there is one, in one transaction: a kill between the two would tell twice, or never. */
async function savePushes(store: WriteStore, record: PushRecord, isNews: boolean, nowMs: number): Promise<void> {
  const { lastPushAtMs } = record.channel
  const event: OperatorEvent = {
    event: record.toldSilent ? 'pushes_silent' : 'pushes_trusted',
    lastPushAt: lastPushAtMs === null ? null : new Date(lastPushAtMs).toISOString(),
  }
  await store.transaction(async (tx) => {
    if (isNews) await queueOperatorEvent(tx, event, nowMs)
    await tx.saveSetting(PUSHES, new TextEncoder().encode(encodePushRecord(record)))
  })
}
