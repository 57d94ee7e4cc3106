import { defineConfig } from 'vitest/config'

/** The config for tests that end badly on purpose, which `left-behind.long.test.ts` runs. */
export default defineConfig({ test: { pool: 'forks', include: ['test/gate/left-behind/*.ends-badly.ts'], testTimeout: 1000 } })
