import { vi } from 'vitest'

/** This only ends a hang, because a machine may be several times slower than usual. A test about a shorter time must set a clock of its own. */
const PATIENCE_MS = 60_000

const { waitFor } = vi
vi.waitFor = (callback, options) =>
  waitFor(callback, { timeout: PATIENCE_MS, ...(typeof options === 'number' ? { timeout: options } : options) })
