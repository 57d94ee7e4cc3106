import { parentPort, workerData } from 'node:worker_threads'
import type { DispatchRound } from '../../core/domain/delivery/dispatch-round.ts'
import type { Incoming } from '../../core/domain/history/recording.ts'
import { createLog } from '../../core/ops/log.ts'
import { tellChanged } from '../../core/runtime/answer-cache.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { createReportSender } from '../../core/runtime/threads/dispatch-messages.ts'
import { createCommitThrottle, createRingService, type RingVerbs } from '../../core/runtime/threads/ring-buffer.ts'
import { serveVerbs } from '../../core/runtime/threads/thread.ts'
import { openWriteSide } from '../open-write-side.ts'
import type { WriterData, WriterOnThread } from './threads.ts'

/** The thread that writes, so that no sync to disk and no lock blocks an event loop that answers requests. */
if (parentPort === null) throw new Error('this file runs only as the writer thread')
// Only `threads.ts` starts this thread, with this data.
const { options, logLevel, batchMax, ring, receiver, changes } = workerData as WriterData
const tell = (parcelIds: readonly number[]) => tellChanged(changes, parcelIds)
const verbs = await openWriteSide(options, systemClock, createLog({ level: logLevel }), tell)
const sendReport = createReportSender()
/** Leaves some time between commits. `everyMs`: somewhat longer than a commit takes. `many`: how many pushes arrive in that time at full load. */
const throttle = createCommitThrottle({ everyMs: 1.6, many: 12 }, systemClock.monotonic)
const serveRing = createRingService({
  async record(batch: readonly Incoming[]) {
    const { touchedParcels, ...report } = await verbs.record(batch)
    tell(touchedParcels)
    return report
  },
  throttle,
  batchMax,
})
serveVerbs<RingVerbs>(receiver.port, { ...serveRing(receiver.ring) })
serveVerbs<WriterOnThread>(parentPort, {
  ...verbs,
  ...serveRing(ring),
  async reprocess(request: Parameters<typeof verbs.reprocess>[0]) {
    const done = await verbs.reprocess(request)
    if (done.kind === 'done') tell(done.report.touchedParcels)
    return done
  },
  async dispatchRound(round: DispatchRound) {
    return sendReport({ ...(await verbs.dispatchRound(round)), isBusy: throttle.isBusy() })
  },
})
