import { parentPort, workerData } from 'node:worker_threads'
import { createForwardedLog } from '../../core/ops/log.ts'
import { troubleOn } from '../../core/runtime/disk-watch.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { queueOnWriter, type RingVerbs } from '../../core/runtime/threads/ring-buffer.ts'
import { callThere, serveVerbs } from '../../core/runtime/threads/thread.ts'
import { openReceiveSide } from '../../core/wiring/hosting/receive-side.ts'
import { createRefusalSamples } from '../../upkeep/refusals/refusal-samples.ts'
import type { ReceiverData, ReceiverOnThread } from './hosted-receiver.ts'

/** The thread that receives pushes, so that a flood of them does not delay answers to apps. */
if (parentPort === null) throw new Error('this file runs only as the receiver thread')
// Only `hosted-receiver.ts` starts this thread, with this data.
const { settings, logLevel, writer, logPort, diskSign } = workerData as ReceiverData
/** Larger bodies are sent as messages, because an entry must fit into half of the ring. */
const RING_BODY_BYTES_MAX = 256 * 1024
const { verbs, drainReplies, close } = await callThere<RingVerbs>(writer.port)
const side = openReceiveSide(settings, {
  queue: queueOnWriter(writer.ring, verbs, { bodyBytesMax: RING_BODY_BYTES_MAX, drainReplies }),
  disk: { trouble: () => troubleOn(diskSign) },
  clock: systemClock,
  log: createForwardedLog(logLevel, (line) => logPort.postMessage(line)),
  examine: createRefusalSamples,
})
serveVerbs<ReceiverOnThread>(parentPort, {
  ...side,
  async close() {
    close()
    logPort.close()
  },
})
