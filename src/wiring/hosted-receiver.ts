import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Config } from '../config/config.ts'
import type { Log } from '../flow/ports.ts'
import type { LogLine } from '../ops/log.ts'
import { createDiskSign, type DiskSign } from '../runtime/disk-watch.ts'
import type { RingBuffer } from '../runtime/threads/ring-buffer.ts'
import { type Hosted, hostOnThread } from '../runtime/threads/thread.ts'
import type { ReceiverNews, ReceiveSettings, ReceiveSide } from './receive-side.ts'

/** What the thread that receives is started with. */
export interface ReceiverData {
  readonly settings: ReceiveSettings
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  /** Where lines of the log go. */
  readonly logPort: MessagePort
  /** The line to the thread that writes. */
  readonly writer: { readonly ring: RingBuffer; readonly port: MessagePort }
  readonly diskSign: DiskSign
}

interface OnThread extends ReceiveSide {
  /** Ends the thread. */
  close(): Promise<void>
}

export interface HostedReceiver {
  readonly verbs: Omit<OnThread, 'news'>
  readonly died: Hosted<unknown>['died']
  /** Where it looks whether there is trouble with the disk. */
  readonly diskSign: DiskSign
  /** Hands on what happens there, and what it logs, from now on. To be called once. */
  follow(tell: (news: ReceiverNews) => void, log: Log): void
}

const VERBS = ['listen', 'replaceKeys', 'news', 'waiting', 'stop', 'close'] as const
/** A push in flight should not outlive the collector's quick rounds; more room than this makes nothing faster. */
const YOUNG_MB = 24

/** Pushes get a thread: however many come, apps are answered by an event loop that has nothing to do with them. */
export async function hostReceiver(config: Config, writer: ReceiverData['writer']): Promise<HostedReceiver> {
  const lines = new MessageChannel()
  const diskSign = createDiskSign()
  const data: ReceiverData = {
    logLevel: config.log.level,
    logPort: lines.port1,
    writer,
    diskSign,
    settings: {
      listen: config.listen.public,
      limits: config.limits,
      webhook: { path: config.webhook.path, bodyBytesMax: config.webhook.bodyBytesMax },
      sharedKeys: config.webhook.sharedKeys.map((key) => key.reveal()),
    },
  }
  // The file's own ending: sources run as they are in development and compiled from `dist`.
  const file = new URL(`./receiver-thread${import.meta.url.slice(-3)}`, import.meta.url)
  const { verbs, died } = await hostOnThread<OnThread>(
    file,
    { name: 'receiver', data, ends: [lines.port1, writer.port], youngMb: YOUNG_MB },
    VERBS,
  )
  const hand = async (tell: (news: ReceiverNews) => void) => {
    for (;;) {
      // There is no more of it when the thread has ended, and that is told by `died`.
      const news = await verbs.news().catch(() => null)
      if (news === null) return
      tell(news)
    }
  }
  return {
    verbs,
    died,
    diskSign,
    follow(tell, log) {
      lines.port2.on('message', ({ level, fields, message }: LogLine) => log[level](fields, message))
      void hand(tell)
    },
  }
}
