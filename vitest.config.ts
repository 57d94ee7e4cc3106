import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { defineConfig } from 'vitest/config'

/** What runs within seconds: `npm run test:unit`. */
const UNIT = ['test/core/{domain,flow}/**/*.test.ts', 'test/console/problems/*.test.ts', 'test/**/*.rules.test.ts', 'test/house/*.test.ts']

/** What takes long, and says more about what other tests have shown: `npm run test:extended`. */
const EXTENDED = 'test/**/*.extended.test.ts'

/** What repeats at length what shorter tests have shown: `npm run faults`. */
const LONG = 'test/**/*.long.test.ts'

/** What is about load: `npm run test:stress`. */
const STRESS = 'test/stress/**/*.test.ts'

/** What the files of `STRESS` import to repeat it. */
const REPEATED = globSync(STRESS).flatMap((path) =>
  [...readFileSync(path, 'utf8').matchAll(/^import '(.*\.test\.ts)'$/gm)].map(([, imported = '']) =>
    posix.join(posix.dirname(path), imported),
  ),
)

/** The other tests that have a long form. */
const LONG_FORMS = globSync('test/**/*.test.ts').filter(
  (path) => readFileSync(path, 'utf8').includes('/support/runner/long-form.ts') && !REPEATED.includes(path),
)

/** Before the tests of processes. */
const BEFORE = ['test/support/runner/compile-once.ts', 'test/support/runner/postgres-once.ts']

const MINUTE_MS = 60_000

/** `npm test` is the projects `unit` and `process`; the others have a command each. The gate is all but `faults`. */
export default defineConfig({
  test: {
    // Workers are processes, because native addons do not like threads that end. One more than the smallest machine has cores, since tests of processes
    // mostly wait for them.
    pool: 'forks',
    // A worker runs one file after the other and keeps its modules: loading those anew for each file took a third of the time. So a test leaves nothing
    // behind in its process: no listener, no clock of its own, no change of the environment.
    isolate: false,
    maxWorkers: 3,
    // Young objects get all their room at once: most of a file's time is its start, when nothing dies young and each step on the way copies it all.
    execArgv: ['--min-semi-space-size=16'],
    // In another order at each run, so that no test comes to need what another left; the seed is printed, and `--sequence.seed` repeats a run.
    sequence: { shuffle: { tests: true } },
    // They end what hangs, and are no measure of anything: a machine may be several times slower.
    testTimeout: 5 * MINUTE_MS,
    hookTimeout: 5 * MINUTE_MS,
    expect: { poll: { timeout: MINUTE_MS, interval: 20 } },
    setupFiles: 'test/support/runner/patience.ts',
    projects: [
      { extends: true, test: { name: 'unit', include: UNIT, exclude: [EXTENDED] } },
      {
        extends: true,
        test: { name: 'process', include: ['test/**/*.test.ts'], exclude: [...UNIT, EXTENDED, LONG, STRESS], globalSetup: BEFORE },
      },
      { extends: true, test: { name: 'extended', include: [EXTENDED], env: { RELAY_FAULTS: 'extended' }, globalSetup: BEFORE } },
      // One file at a time: what is measured has the machine to itself. After the others, where several projects run.
      {
        extends: true,
        test: {
          name: 'stress',
          include: [STRESS],
          exclude: [LONG],
          env: { RELAY_FAULTS: 'stress' },
          globalSetup: BEFORE,
          fileParallelism: false,
          testTimeout: 10 * MINUTE_MS,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'faults',
          include: [STRESS, LONG, ...LONG_FORMS],
          env: { RELAY_FAULTS: 'long' },
          globalSetup: BEFORE,
          fileParallelism: false,
          testTimeout: 60 * MINUTE_MS,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
