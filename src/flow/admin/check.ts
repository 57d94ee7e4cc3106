import { type CheckLine, type CheckName, failed, inOrder, type Verdict } from '../../domain/admin/check.ts'
import { createSingleFlight } from '../single-flight.ts'

/** Looks at one thing. It may reject: then it has failed, with the message of the error. */
export interface Probe {
  readonly name: CheckName
  /** Which one of several; null: there is only one. */
  readonly subject: string | null
  readonly look: () => Promise<Verdict | readonly CheckLine[]>
}

/** Checks whether the deployment works: every line by itself, in the order of `CHECK_NAMES`. Never rejects. */
export type Check = () => Promise<readonly CheckLine[]>

export interface CheckPorts {
  readonly probes: () => Promise<readonly Probe[]>
  /** Resolves after so long. */
  readonly pause: (ms: number) => Promise<unknown>
  /** Milliseconds from an arbitrary start, which never go back. */
  readonly monotonic: () => number
}

/** How long one look may take; longer than the time-outs of what it asks. */
const LOOK_MS = 30_000
/** Looks under way at the same time. */
const AT_ONCE = 16
/** A check is not repeated sooner than this, because it calls the carrier and every endpoint. */
const KEPT_MS = 5000

/** Creates the check. Whoever asks while one is under way, or shortly after, gets its result. */
export function createCheck({ probes, pause, monotonic }: CheckPorts): Check {
  const share = createSingleFlight<readonly CheckLine[]>()
  let last: { readonly lines: readonly CheckLine[]; readonly atMs: number } | null = null

  async function lookAt({ name, subject, look }: Probe): Promise<readonly CheckLine[]> {
    const late = pause(LOOK_MS).then(() => failed(`It gave no result within ${LOOK_MS / 1000} s.`))
    const found = await Promise.race([look(), late]).catch((error: unknown) =>
      failed(error instanceof Error ? error.message : String(error)),
    )
    return 'state' in found ? [{ name, subject, ...found }] : found
  }

  async function run(): Promise<readonly CheckLine[]> {
    const waiting = [...(await probes())]
    const lines: CheckLine[] = []
    const work = async () => {
      for (let probe = waiting.shift(); probe !== undefined; probe = waiting.shift()) lines.push(...(await lookAt(probe)))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    last = { lines: inOrder(lines), atMs: monotonic() }
    return last.lines
  }

  return async () => (last !== null && monotonic() - last.atMs < KEPT_MS ? last.lines : await share('check', run))
}
