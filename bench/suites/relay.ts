import { backlog } from '../relay/backlog.ts'
import { freshQueue } from '../relay/fresh-queue.ts'
import { ingestBeside } from '../relay/ingest-beside.ts'
import { reach } from '../relay/reach.ts'
import type { Bench, SuiteReport } from '../suite.ts'

/** What delivering reaches, what it takes from ingest, and what a backlog and endpoints that never answer do to it. */
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
