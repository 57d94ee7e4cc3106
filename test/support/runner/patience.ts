import { vi } from 'vitest'

/** This limit only ends a hang. It is long, because a machine may be several times slower than usual. A test about times must set a clock of its own. */
const PATIENCE_MS = 60_000

const { waitFor } = vi
vi.waitFor = (callback, options) =>
  waitFor(callback, { timeout: PATIENCE_MS, ...(typeof options === 'number' ? { timeout: options } : options) })
