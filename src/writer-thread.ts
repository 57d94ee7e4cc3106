import { parentPort, workerData } from 'node:worker_threads'
import type { Incoming } from './flow/ports.ts'
import type { WriterData } from './hosted-writer.ts'
import { createLog } from './log.ts'
import { createPace } from './run/pace.ts'
import { packOutcomes } from './run/packed-outcomes.ts'
import { createReportPacker, type PackedTurn, unpackTurn } from './run/packed-turn.ts'
import { goBehind } from './run/priority.ts'
import { openOutlet } from './run/push-ring.ts'
import { asError, serveVerbs } from './run/thread.ts'
import { systemClock } from './system-clock.ts'
import { openWriteSide } from './write-side.ts'

/** The thread that writes: no sync to disk and no lock ever stands on the event loop that answers. */
if (parentPort === null) throw new Error('this file is the writer thread; it is not run by itself')
goBehind()
// Only the composition root starts this thread, with this data.
const { options, logLevel, ring, batchMax } = workerData as WriterData
const verbs = await openWriteSide(options, systemClock, createLog({ level: logLevel }))
const packReport = createReportPacker()
/** Somewhat longer than a commit takes, and what comes meanwhile when the relay is as busy as it can be. */
const PACE = { everyMs: 1.6, many: 12 } as const
const pace = createPace(PACE, systemClock.monotonic)
const brought: Incoming[] = []
const waiting = openOutlet(ring, () => brought.shift())
serveVerbs(parentPort, {
  ...verbs,
  bring: async (incoming: Incoming) => void brought.push(incoming),
  async commit() {
    pace.keep(waiting.count())
    const batch = waiting.take(batchMax)
    pace.begins(batch.length)
    try {
      return { taken: batch.length, packed: packOutcomes(await verbs.record(batch)) }
    } catch (error) {
      return { taken: batch.length, error: asError(error) }
    }
  },
  deliveryTurn: async (packed: PackedTurn) => packReport(await verbs.deliveryTurn(unpackTurn(packed))),
})
