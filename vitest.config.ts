import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/compile-once.ts'],
    // Processes, each file in its own: native addons and threads do not like to be shared. Two at a time, as many as the smallest machine has cores.
    pool: 'forks',
    isolate: true,
    maxWorkers: 2,
    // Young objects get all their room at once: most of a file's time is its start, when nothing dies young and each step on the way copies it all.
    execArgv: ['--min-semi-space-size=16'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
})
