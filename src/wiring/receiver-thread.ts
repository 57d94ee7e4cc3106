import { parentPort, workerData } from 'node:worker_threads'
import { createForwardedLog } from '../ops/log.ts'
import { troubleOn } from '../runtime/disk-watch.ts'
import { systemClock } from '../runtime/system-clock.ts'
import { queueOnWriter, RING_VERBS, type RingVerbs } from '../runtime/threads/ring-recorder.ts'
import { callThere, serveVerbs } from '../runtime/threads/thread.ts'
import type { ReceiverData } from './hosted-receiver.ts'
import { openReceiveSide } from './receive-side.ts'

/** The thread that receives pushes: however many come, apps are answered by an event loop that has nothing to do with them. */
if (parentPort === null) throw new Error('this file is the receiver thread; it is not run by itself')
// Only the composition root starts this thread, with this data.
const { settings, logLevel, writer, logPort, diskSign } = workerData as ReceiverData
/** Larger ones come by message: what is in the ring, a body and its reading, must fit into half of it. */
const RING_BODY_BYTES_MAX = 256 * 1024
const { verbs, hear, close } = await callThere<RingVerbs>(writer.port, RING_VERBS)
const side = openReceiveSide(settings, {
  queue: queueOnWriter(writer.ring, verbs, { bodyBytesMax: RING_BODY_BYTES_MAX, drainReplies: hear }),
  disk: { trouble: () => troubleOn(diskSign) },
  clock: systemClock,
  log: createForwardedLog(logLevel, (line) => logPort.postMessage(line)),
})
serveVerbs(parentPort, {
  ...side,
  async close() {
    close()
    logPort.close()
  },
})
