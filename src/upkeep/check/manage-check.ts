import type { Verdict } from '../../console/problems/concern.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { createSingleFlight } from '../../core/flow/shared-flight.ts'
import { type CheckLine, type CheckName, failed, inOrder } from './check.rules.ts'

/** One part of the check. If `look` rejects, the part has failed, and its line shows the message of the error. */
export interface Probe {
  readonly name: CheckName
  /** The name of the checked endpoint, for example; null: there is only one thing of this kind. */
  readonly subject: string | null
  readonly look: () => Promise<Verdict | readonly CheckLine[]>
}

/**
 * Checks whether the deployment works. Returns lines in the order of `CHECK_NAMES`. The failure of one part does not affect the other lines.
 * Never rejects.
 */
export type Check = () => Promise<readonly CheckLine[]>

export interface CheckPorts {
  readonly probes: () => Promise<readonly Probe[]>
  readonly pause: (ms: number) => Promise<unknown>
  /** Returns milliseconds from an arbitrary start. They never go back. */
  readonly monotonic: () => number
}

/** One look may take this long. Its requests time out earlier. */
const LOOK_MS = 30_000
const AT_ONCE = 16
/** A check calls the carrier and every endpoint, so its result is used again for this long. */
const KEPT_MS = 5000
/** After so many checks in ten minutes a result is used for a minute, so that checks in a loop leave the carrier's calls to polls. */
const MANY = { checks: 10, withinMs: 600_000, keptMs: 60_000 }

/** Creates the check. A call during a check, or shortly after it, returns the result of that check. */
export function createCheck({ probes, pause, monotonic }: CheckPorts): Check {
  const share = createSingleFlight<readonly CheckLine[]>()
  /** When the last checks began, the newest last. */
  let began: readonly number[] = []
  let last: { readonly lines: readonly CheckLine[]; readonly atMs: number } | null = null

  async function lookAt({ name, subject, look }: Probe): Promise<readonly CheckLine[]> {
    const late = pause(LOOK_MS).then(() => failed(`It gave no result within ${LOOK_MS / 1000} s.`))
    const found = await Promise.race([look(), late]).catch((error: unknown) => failed(describeFailure(error)))
    return 'state' in found ? [{ name, subject, ...found }] : found
  }

  async function run(): Promise<readonly CheckLine[]> {
    began = [...began, monotonic()].slice(-MANY.checks)
    const waiting = [...(await probes())]
    const lines: CheckLine[] = []
    const work = async () => {
      for (let probe = waiting.shift(); probe !== undefined; probe = waiting.shift()) lines.push(...(await lookAt(probe)))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    last = { lines: inOrder(lines), atMs: monotonic() }
    return last.lines
  }

  function keptMs(): number {
    const [first] = began
    return first !== undefined && began.length === MANY.checks && monotonic() - first < MANY.withinMs ? MANY.keptMs : KEPT_MS
  }

  return async () => (last !== null && monotonic() - last.atMs < keptMs() ? last.lines : await share('check', run))
}
