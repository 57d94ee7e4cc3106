import { defineConfig } from 'vitest/config'

/** What runs within seconds: `npm run test:unit`. */
const UNIT = ['test/domain/**/*.test.ts', 'test/flow/**/*.test.ts', 'test/house/**/*.test.ts']

export default defineConfig({
  test: {
    // Processes, each file in its own: native addons and threads do not like to be shared. One more than the smallest machine has cores, since tests of
    // processes mostly wait for them.
    pool: 'forks',
    isolate: true,
    maxWorkers: 3,
    // Young objects get all their room at once: most of a file's time is its start, when nothing dies young and each step on the way copies it all.
    execArgv: ['--min-semi-space-size=16'],
    // In another order at each run, so that no test comes to need what another left; the seed is printed, and `--sequence.seed` repeats a run.
    sequence: { shuffle: { tests: true } },
    testTimeout: 20_000,
    hookTimeout: 30_000,
    projects: [
      { extends: true, test: { name: 'unit', include: UNIT } },
      {
        extends: true,
        test: {
          name: 'process',
          include: ['test/**/*.test.ts'],
          exclude: UNIT,
          globalSetup: ['test/support/compile-once.ts', 'test/support/postgres-once.ts'],
        },
      },
    ],
  },
})
