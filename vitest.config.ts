import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Processes, each file in its own: native addons and threads do not like to be shared. Two at a time, as many as the smallest machine has cores.
    pool: 'forks',
    isolate: true,
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
})
