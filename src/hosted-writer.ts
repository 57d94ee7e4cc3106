import { deliveryRules } from './config/delivery-rules.ts'
import type { Config } from './config.ts'
import type { Incoming, WriteSide } from './flow/ports.ts'
import { type PackedOutcomes, unpackOutcomes } from './run/packed-outcomes.ts'
import { createReportUnpacker, type PackedReport, type PackedTurn, packTurn } from './run/packed-turn.ts'
import { createPushRing, openInlet, type PushRing } from './run/push-ring.ts'
import type { Recorder } from './run/recorder.ts'
import { type Hosted, hostOnThread } from './run/thread.ts'
import type { WriteSideOptions } from './write-side.ts'

/** What the thread that hosts the write side is started with. */
export interface WriterData {
  readonly options: WriteSideOptions
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  /** Where what is to be recorded is put. */
  readonly ring: PushRing
  /** The most of it in one transaction. */
  readonly batchMax: number
}

/** The write side as its thread offers it: what is large or frequent travels packed, and pushes come by a ring of memory both see. */
interface OnThread extends Omit<WriteSide, 'record' | 'deliveryTurn'> {
  /** Records what is in the ring by then. */
  commit(): Promise<PackedCommit>
  /** What has only its place in the ring. */
  bring(incoming: Incoming): Promise<void>
  deliveryTurn(turn: PackedTurn): Promise<PackedReport>
}

type PackedCommit = { readonly taken: number; readonly packed: PackedOutcomes } | { readonly taken: number; readonly error: unknown }

export interface HostedWriter extends Omit<Hosted<unknown>, 'verbs'> {
  readonly verbs: Omit<WriteSide, 'record'>
  readonly recorder: Recorder
}

/** Room for what comes during some commits; what does not find any waits for it. */
const RING_BYTES = 4 * 1024 * 1024
/** Larger ones come by message: what is in the ring, a body and its reading, must fit into half of it. */
const RING_BODY_BYTES_MAX = 256 * 1024

const VERBS = [
  'commit',
  'bring',
  'claimDuePolls',
  'claimPoll',
  'notePollFailure',
  'noteNotPollable',
  'noteLanguageAsked',
  'watch',
  'watchMany',
  'unwatch',
  'shiftSchedule',
  'carrierMemory',
  'rememberCarrier',
  'pushChannel',
  'keepLearnt',
  'settleMissedPushes',
  'deliveryTurn',
  'adjustDelivery',
  'syncEndpoints',
  'tellOperator',
  'catchUp',
  'reserveEndpoint',
  'addEndpoint',
  'changeEndpoint',
  'removeEndpoint',
  'replayDeliveries',
  'relayId',
  'tokenKey',
  'probe',
  'close',
] as const

/** SQLite has one writer: it gets a thread, so that no sync to disk ever stands on the event loop that answers. */
export async function hostWriter(config: Config, sqlitePath: string): Promise<HostedWriter> {
  const { cadence, finished, missedPushGraceMs } = config.poll
  const ring = createPushRing(RING_BYTES)
  const workerData: WriterData = {
    logLevel: config.log.level,
    ring,
    batchMax: config.limits.batch,
    options: {
      sqlitePath,
      record: { cadence: { ...cadence, ...finished }, missedPushGraceMs, historyRetentionMs: config.retention.historyMs },
      deliver: deliveryRules(config),
    },
  }
  // The file's own ending: sources run as they are in development and compiled from `dist`.
  const file = new URL(`./writer-thread${import.meta.url.slice(-3)}`, import.meta.url)
  const { verbs, died, hear } = await hostOnThread<OnThread>(file, workerData, VERBS)
  const unpackReport = createReportUnpacker()
  return {
    verbs: { ...verbs, deliveryTurn: async (turn) => unpackReport(await verbs.deliveryTurn(packTurn(turn))) },
    recorder: recordThere(ring, verbs),
    died,
    hear,
  }
}

/** The recorder on the thread. */
function recordThere(ring: PushRing, verbs: Pick<OnThread, 'commit' | 'bring'>): Recorder {
  const inlet = openInlet(ring)
  let asked = 0
  return {
    put(incoming) {
      if (incoming.kind === 'push' && incoming.body.byteLength <= RING_BODY_BYTES_MAX) return inlet.put(incoming)
      if (!inlet.putElsewhere()) return false
      // If the thread is gone, so is the commit that would find it, which says so.
      verbs.bring(incoming).catch(() => {})
      return true
    },
    isAwaited: () => asked !== inlet.looks(),
    async commit() {
      asked = (asked + 1) | 0
      try {
        const committed = await verbs.commit()
        if ('error' in committed) return committed
        return { taken: committed.taken, report: unpackOutcomes(committed.packed) }
      } catch (error) {
        asked = inlet.looks()
        throw error
      }
    },
  }
}
