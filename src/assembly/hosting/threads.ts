import { MessageChannel } from 'node:worker_threads'
import type { Config } from '../../core/config/config.ts'
import { type ChangeTable, createChangeTable } from '../../core/runtime/threads/change-table.ts'
import { createRingBuffer } from '../../core/runtime/threads/ring-buffer.ts'
import { type HostedReceiver, hostReceiver } from '../../core/wiring/hosting/hosted-receiver.ts'
import { type HostedWriter, hostWriter } from './hosted-writer.ts'

/** The threads of the relay beside the main thread. Each promise resolves when the thread has started. */
export interface Threads {
  readonly writer: Promise<HostedWriter>
  readonly receiver: Promise<HostedReceiver>
  /** Shows answer caches which parcels the writer has changed. */
  readonly changes: ChangeTable
}

/** The ring has room for the pushes that arrive during a few commits. Further pushes wait. */
const RING_BYTES = 4 * 1024 * 1024

/** Starts the receiver's and the writer's thread with a channel between them, so that no push passes through the main thread. */
export function startThreads(config: Config, sqlitePath: string): Threads {
  const ring = createRingBuffer(RING_BYTES)
  const changes = createChangeTable()
  const { port1, port2 } = new MessageChannel()
  const writer = hostWriter(config, sqlitePath, { receiver: { ring, port: port1 }, changes })
  const receiver = hostReceiver(config, { ring, port: port2 })
  // A thread may fail before anybody awaits its promise. That must not count as an unhandled rejection, which would end the process.
  for (const thread of [writer, receiver]) thread.catch(() => undefined)
  return { writer, receiver, changes }
}
