import { MessageChannel } from 'node:worker_threads'
import type { Config } from '../config/config.ts'
import { type ChangeTable, createChangeTable } from '../runtime/threads/change-table.ts'
import { createRingBuffer } from '../runtime/threads/ring-buffer.ts'
import { type HostedReceiver, hostReceiver } from './hosted-receiver.ts'
import { type HostedWriter, hostWriter } from './hosted-writer.ts'

/** The relay's threads besides the one that starts them, under way. */
export interface Threads {
  readonly writer: Promise<HostedWriter>
  readonly receiver: Promise<HostedReceiver>
  /** What the writer has committed, for who keeps answers. */
  readonly changes: ChangeTable
}

/** Room for the pushes that come during some commits; what does not find any waits for it. */
const RING_BYTES = 4 * 1024 * 1024

/** Starts the thread that receives pushes and the one that writes, with a line between them: no push goes by way of the one that starts them. */
export function startThreads(config: Config, sqlitePath: string): Threads {
  const ring = createRingBuffer(RING_BYTES)
  const changes = createChangeTable()
  const { port1, port2 } = new MessageChannel()
  const writer = hostWriter(config, sqlitePath, { receiver: { ring, port: port1 }, changes })
  const receiver = hostReceiver(config, { ring, port: port2 })
  // What fails before anyone waits for it is told by whoever then does.
  for (const thread of [writer, receiver]) thread.catch(() => undefined)
  return { writer, receiver, changes }
}
