import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Config } from '../../core/config/config.ts'
import type { DispatchRound } from '../../core/domain/delivery/dispatch-round.ts'
import type { WriteSide } from '../../core/flow/write-side.ts'
import { type ChangeTable, createChangeTable } from '../../core/runtime/answer-cache.ts'
import type { CommitQueue } from '../../core/runtime/group-commit.ts'
import { createReportReceiver, type SentReport, withoutViews } from '../../core/runtime/threads/dispatch-messages.ts'
import { createRingBuffer, queueOnWriter, type RingBuffer, type RingVerbs } from '../../core/runtime/threads/ring-buffer.ts'
import { type Hosted, hostOnThread } from '../../core/runtime/threads/thread.ts'
import type { MoverData, MoverVerbs } from '../../upkeep/moving/open-moves.ts'
import { type WriteSideOptions, writeRulesOf } from '../open-write-side.ts'
import { hostReceiver } from './hosted-receiver.ts'

/** The threads of the relay beside the main thread. Each promise resolves when the thread has started. */
export type Threads = ReturnType<typeof startThreads>

/** The ring has room for the pushes that arrive during a few commits. Further pushes wait. */
const PUSHES_RING_BYTES = 4 * 1024 * 1024

/** Starts the receiver's and the writer's thread with a channel between them, so that no push passes through the main thread. */
export function startThreads(config: Config, sqlitePath: string) {
  const ring = createRingBuffer(PUSHES_RING_BYTES)
  const changes = createChangeTable()
  const { port1, port2 } = new MessageChannel()
  const writer = hostWriter(config, sqlitePath, { receiver: { ring, port: port1 }, changes })
  const receiver = hostReceiver(config, { ring, port: port2 })
  // A thread may fail before anybody awaits its promise. That must not count as an unhandled rejection, which would end the process.
  for (const thread of [writer, receiver]) thread.catch(() => undefined)
  return {
    writer,
    receiver,
    /** Shows answer caches which parcels the writer has changed. */
    changes,
  }
}

export interface WriterData {
  readonly options: WriteSideOptions
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  /** The most observations in one transaction. */
  readonly batchMax: number
  /** Carries observations from the main thread. */
  readonly ring: RingBuffer
  /** Carries observations and calls from the receiver's thread. */
  readonly receiver: { readonly ring: RingBuffer; readonly port: MessagePort }
  /** Updated after each commit. */
  readonly changes: ChangeTable
}

/** The functions of the writer's thread that other threads can call. */
export interface WriterOnThread extends Omit<WriteSide, 'record' | 'dispatchRound'>, RingVerbs {
  dispatchRound(round: DispatchRound): Promise<SentReport>
}

interface HostedWriter extends Pick<Hosted<unknown>, 'died' | 'drainReplies'> {
  readonly verbs: Omit<WriteSide, 'record'>
  /** The queue for observations from this thread. */
  readonly queue: CommitQueue
}

/** A small ring is enough, because polled observations are sent as messages. Each takes only an empty entry in the ring. */
const POLLS_RING_BYTES = 64 * 1024
/** The size of the thread's young heap. The objects live for one message only, so a larger heap would only take memory. */
const YOUNG_MB = 16

/** Hosts SQLite's only writer on a thread, so that no sync to disk blocks an event loop that answers requests. */
async function hostWriter(
  config: Config,
  sqlitePath: string,
  { receiver, changes }: Pick<WriterData, 'receiver' | 'changes'>,
): Promise<HostedWriter> {
  const ring = createRingBuffer(POLLS_RING_BYTES)
  const data: WriterData = {
    logLevel: config.log.level,
    ring,
    receiver,
    changes,
    batchMax: config.limits.batch,
    options: { sqlitePath, ...writeRulesOf(config) },
  }
  // Use the extension of this file: sources run as `.ts` in development and as `.js` from `dist`.
  const file = new URL(`./writer-thread${import.meta.url.slice(-3)}`, import.meta.url)
  const { verbs, died, drainReplies } = await hostOnThread<WriterOnThread>(file, {
    name: 'writer',
    data,
    ends: [receiver.port],
    youngMb: YOUNG_MB,
  })
  const received = createReportReceiver()
  return {
    verbs: { ...verbs, dispatchRound: async (round) => received(await verbs.dispatchRound(withoutViews(round))) },
    queue: queueOnWriter(ring, verbs, { bodyBytesMax: 0, drainReplies }),
    died,
    drainReplies,
  }
}

/** The thread's young heap has room for a batch of rows, which may take some megabytes. */
const MOVER_YOUNG_MB = 32

/** Starts the thread that copies a store when it is moved. */
export async function startMover(data: MoverData): Promise<Hosted<MoverVerbs>> {
  // Use the extension of this file: sources run as `.ts` in development and as `.js` from `dist`.
  const file = new URL(`./mover-thread${import.meta.url.slice(-3)}`, import.meta.url)
  return await hostOnThread<MoverVerbs>(file, { name: 'mover', data, youngMb: MOVER_YOUNG_MB })
}
