import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Config } from '../../core/config/config.ts'
import type { LogLine } from '../../core/ops/log.ts'
import { createDiskSign, type DiskSign } from '../../core/runtime/disk-watch.ts'
import type { RingBuffer } from '../../core/runtime/threads/ring-buffer.ts'
import { type Hosted, hostOnThread } from '../../core/runtime/threads/thread.ts'
import {
  type Receiver,
  type ReceiverNews,
  type ReceiveSettings,
  type ReceiveSide,
  receiveSettingsOf,
} from '../../core/wiring/hosting/receive-side.ts'

/** The data with which the receiver's thread is started. */
export interface ReceiverData {
  readonly settings: ReceiveSettings
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  /** Receives the thread's log lines. */
  readonly logPort: MessagePort
  /** The channel to the writer's thread. */
  readonly writer: { readonly ring: RingBuffer; readonly port: MessagePort }
  readonly diskSign: DiskSign
}

export interface ReceiverOnThread extends ReceiveSide {
  close(): Promise<void>
}

export interface HostedReceiver extends Receiver, Pick<Hosted<unknown>, 'died'> {
  readonly verbs: Omit<ReceiverOnThread, 'news'>
}

/** The size of the thread's young heap. It is so large that the garbage collector rarely copies the data of a push in flight. */
const YOUNG_MB = 24

/** Hosts receiving on a separate thread, so that a flood of pushes does not delay answers to apps. */
export async function hostReceiver(config: Config, writer: ReceiverData['writer']): Promise<HostedReceiver> {
  const lines = new MessageChannel()
  const diskSign = createDiskSign()
  const data: ReceiverData = {
    logLevel: config.log.level,
    logPort: lines.port1,
    writer,
    diskSign,
    settings: receiveSettingsOf(config),
  }
  // Use the extension of this file: sources run as `.ts` in development and as `.js` from `dist`.
  const file = new URL(`./receiver-thread${import.meta.url.slice(-3)}`, import.meta.url)
  const { verbs, died } = await hostOnThread<ReceiverOnThread>(file, {
    name: 'receiver',
    data,
    ends: [lines.port1, writer.port],
    youngMb: YOUNG_MB,
  })
  const hand = async (tell: (news: ReceiverNews) => void) => {
    for (;;) {
      // If the call fails, the thread has ended, which `died` reports.
      const news = await verbs.news().catch(() => null)
      if (news === null) return
      tell(news)
    }
  }
  return {
    verbs,
    died,
    diskSign,
    forwardNews(tell, log) {
      lines.port2.on('message', ({ level, fields, message }: LogLine) => log[level](fields, message))
      void hand(tell)
    },
  }
}
