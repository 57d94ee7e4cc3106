import { parentPort, workerData } from 'node:worker_threads'
import { createLog } from './log.ts'
import { type PackedBatch, packOutcomes, unpackBatch } from './run/packed-batch.ts'
import { createReportPacker, type PackedTurn, unpackTurn } from './run/packed-turn.ts'
import { serveVerbs } from './run/thread.ts'
import { systemClock } from './system-clock.ts'
import { openWriteSide, type WriterData } from './write-side.ts'

/** The thread that writes: no sync to disk and no lock ever stands on the event loop that answers. */
if (parentPort === null) throw new Error('this file is the writer thread; it is not run by itself')
// Only the composition root starts this thread, with this data.
const { options, logLevel } = workerData as WriterData
const verbs = await openWriteSide(options, systemClock, createLog({ level: logLevel }))
const packReport = createReportPacker()
serveVerbs(parentPort, {
  ...verbs,
  record: async (packed: PackedBatch) => packOutcomes(await verbs.record(unpackBatch(packed))),
  deliveryTurn: async (packed: PackedTurn) => packReport(await verbs.deliveryTurn(unpackTurn(packed))),
})
