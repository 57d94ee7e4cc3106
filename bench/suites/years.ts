import type { Bench, SuiteReport } from '../suite.ts'
import { measureBesideJobs } from '../years/beside-jobs.ts'
import { drill } from '../years/drill.ts'
import { simulateYear } from '../years/simulated-year.ts'

/** What a relay that runs for years has to do beside its work: backups, restores, retention and rebuilds. On SQLite. */
export async function years(bench: Bench): Promise<SuiteReport> {
  const parts: readonly SuiteReport[] = [await measureBesideJobs(bench), await drill(bench), await simulateYear(bench)]
  return { figures: parts.flatMap(({ figures }) => figures), observations: parts.flatMap(({ observations }) => observations) }
}
