import { vi } from 'vitest'

/** Ends a hang and measures nothing: a machine may be several times slower. A test of a shorter time must set its own clock. */
const PATIENCE_MS = 60_000

const { waitFor } = vi
vi.waitFor = (callback, options) =>
  waitFor(callback, { timeout: PATIENCE_MS, ...(typeof options === 'number' ? { timeout: options } : options) })
