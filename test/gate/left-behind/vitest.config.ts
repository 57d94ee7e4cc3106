import { defineConfig } from 'vitest/config'

/** This config is for the tests that end badly on purpose. */
export default defineConfig({ test: { pool: 'forks', include: ['test/gate/left-behind/*.ends-badly.ts'], testTimeout: 1000 } })
