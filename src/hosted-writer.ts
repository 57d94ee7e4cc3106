import { deliveryRules } from './config/delivery-rules.ts'
import type { Config } from './config.ts'
import type { WriteSide } from './flow/ports.ts'
import { type PackedBatch, type PackedOutcomes, packBatch, unpackOutcomes } from './run/packed-batch.ts'
import { createReportUnpacker, type PackedReport, type PackedTurn, packTurn } from './run/packed-turn.ts'
import { type Hosted, hostOnThread } from './run/thread.ts'
import type { WriterData } from './write-side.ts'

/** The write side as its thread offers it: what is large or frequent travels packed. */
interface OnThread extends Omit<WriteSide, 'record' | 'deliveryTurn'> {
  record(batch: PackedBatch): Promise<PackedOutcomes>
  deliveryTurn(turn: PackedTurn): Promise<PackedReport>
}

const VERBS = [
  'record',
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
export async function hostWriter(config: Config, sqlitePath: string): Promise<Hosted<WriteSide>> {
  const { cadence, finished, missedPushGraceMs } = config.poll
  const workerData: WriterData = {
    logLevel: config.log.level,
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
    verbs: {
      ...verbs,
      record: async (batch) => unpackOutcomes(await verbs.record(packBatch(batch))),
      deliveryTurn: async (turn) => unpackReport(await verbs.deliveryTurn(packTurn(turn))),
    },
    died,
    hear,
  }
}
