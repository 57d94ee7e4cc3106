import { backlog } from '../relay/backlog.ts'
import { freshQueue } from '../relay/fresh-queue.ts'
import { ingestBeside } from '../relay/ingest-beside.ts'
import { reach } from '../relay/reach.ts'
import type { Bench, SuiteReport } from '../suite.ts'

/** The rate of deliveries, their cost to ingest, and the effect of a backlog and of endpoints that never answer. */
export async function relay(bench: Bench): Promise<SuiteReport> {
  const figures = []
  const observations = []
  for (const row of [freshQueue, reach, ingestBeside, backlog]) {
    const report = await row(bench)
    figures.push(...report.figures)
    observations.push(...report.observations)
  }
  return { figures, observations }
}
