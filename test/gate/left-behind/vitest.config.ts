import { defineConfig } from 'vitest/config'

/** For the tests that end badly on purpose. */
export default defineConfig({ test: { pool: 'forks', include: ['test/gate/left-behind/*.ends-badly.ts'], testTimeout: 1000 } })
