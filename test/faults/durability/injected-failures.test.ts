import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { openSqliteWriter } from '../../../src/core/store/sqlite/sqlite.ts'
import { SQLITE_HOOKS } from '../../../src/upkeep/sqlite-engine.ts'
import { pushBody } from '../../support/history/builders.ts'
import { distinctPushes, pushPipelined } from '../../support/network/pipelined-pushes.ts'
import { push } from '../../support/relay/relay.ts'
import { byForm, LONG } from '../../support/runner/long-form.ts'
import { withinOwed } from '../../support/runner/real-time.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { readStore } from '../../support/store/simulated-disk.ts'
import { NotReady, spawnTraced, type TracedRelay } from '../../support/store/strace.ts'

/** `npm run faults` makes this many trials in each test, so that it shows progress. Other runs make a trial for each number in `some`. */
const PIECE = 20
const PIECES = Array.from({ length: 320 / PIECE }, (_, piece) => Array.from({ length: PIECE }, (_, at) => piece * PIECE + at + 1))
const RECOVERY_MS = withinOwed(5000)
/** The start of a relay makes fewer calls than this. */
const START_CALLS = 200
const IN_A_ROW = 3

interface Fault {
  readonly row: string
  readonly calls: string
  readonly error: string
  readonly some: readonly number[]
  /** Returns a number of pushes after which the calls surely work again. */
  readonly pushes: (when: number) => number
}

const FAULTS: readonly Fault[] = [
  { row: 'S3', calls: 'fsync,fdatasync', error: 'EIO', some: byForm([31], [7, 31]), pushes: (when) => when + 10 },
  { row: 'S4', calls: 'pwrite64', error: 'EIO', some: byForm([300], [40, 300]), pushes: () => 40 },
  { row: 'S4', calls: 'pwrite64', error: 'ENOSPC', some: byForm([250], [25, 250]), pushes: () => 40 },
  { row: 'S13', calls: 'openat', error: 'EMFILE', some: [3], pushes: () => 20 },
]

const test = testWith('strace')

for (const fault of byForm(
  FAULTS.filter(({ calls, error }) => calls !== 'openat' && !(calls === 'pwrite64' && error === 'EIO')),
  FAULTS,
)) {
  const { row, calls, error, some } = fault
  const pieces = LONG ? PIECES : [some]
  test.each(pieces.map((whens) => ({ whens, from: whens[0], to: whens.at(-1) })))(
    `${row}, F3: ${error} of ${calls} causes no false 200 and no damage ($from to $to)`,
    async ({ whens }) => {
      const folder = temporaryFolder()
      const left = [...whens]
      const told: string[] = []
      // Run two trials at a time, because a trial mostly waits for a process to start.
      const take = async () => {
        for (let when = left.shift(); when !== undefined; when = left.shift()) told.push(await trial(folder, fault, when))
      }
      await Promise.all([take(), take()])
      // Some trials must fail at a push, not at the start, or the test would show nothing about pushes.
      const startIsOver = !LONG || (whens[0] ?? 0) > START_CALLS
      if (calls !== 'openat' && startIsOver) expect(told.filter((said) => said === 'answered 503').length).toBeGreaterThan(0)
      expect(told).toHaveLength(whens.length)
    },
    600_000,
  )
}

let trials = 0
/** Pushes to a relay in which `IN_A_ROW` system calls fail, from call number `when` on. Then checks what is stored. */
async function trial(parent: string, { calls, error, pushes }: Fault, when: number): Promise<string> {
  const folder = join(parent, String(trials++))
  mkdirSync(folder)
  const path = join(folder, 'relay.db')
  const files = ['', '-wal', '-shm', '-journal', '.lock', '.marker'].flatMap((suffix) => ['-P', `${path}${suffix}`])
  const injected = `inject=${calls}:error=${error}:when=${when}..${when + IN_A_ROW - 1}`
  const strace = [...files, '-e', `trace=${calls}`, '-e', injected, '-o', join(folder, 'trace')]
  const label = `${calls} ${error} from ${when}`
  let relay: TracedRelay
  try {
    relay = await spawnTraced(folder, { strace })
  } catch (failure) {
    if (!(failure instanceof NotReady)) throw failure
    expect(failure.code, label).toBe(1)
    expect(failure.message, label).toContain(`store: `)
    expect(failure.message, label).toContain(path)
    await (await openSqliteWriter(path, SQLITE_HOOKS)).close()
    return 'refused to start'
  }
  const bodies = distinctPushes(pushes(when), `trial-${when}-`)
  const statuses = await pushPipelined(relay.publicUrl, bodies, 1)
  const recovers = await recovery(relay)
  if (relay.process.exitCode === null) await relay.kill()
  else expect(relay.process.exitCode, label).not.toBe(0)

  const clean = statuses.every((status) => status === 200)
  expect(
    statuses.filter((status) => status !== 200 && status !== 503),
    label,
  ).toEqual([])
  expect(recovers, label).toBeLessThan(RECOVERY_MS)
  const { bodies: kept, damage } = readStore(path)
  const lost = bodies.filter((body, at) => statuses[at] === 200 && !kept.has(body.toString()))
  expect({ damage, lost: lost.length }, label).toEqual({ damage: null, lost: 0 })
  await (await openSqliteWriter(path, SQLITE_HOOKS)).close()
  return clean ? 'not noticed' : 'answered 503'
}

/** Measures how long it takes until a push gets a 200. Returns 0 if the relay ended, because a supervisor would start it again. */
async function recovery(relay: TracedRelay): Promise<number> {
  const startedAt = performance.now()
  for (let tries = 0; relay.process.exitCode === null; tries++) {
    const { status } = await push(relay.publicUrl, pushBody({ location: `try ${tries}` }))
    if (status === 200 || performance.now() - startedAt > RECOVERY_MS) return performance.now() - startedAt
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return 0
}
