import { vi } from 'vitest'

/** Ends what hangs, and is no measure of anything: a machine may be several times slower. A test that needs less shows it by a clock of its own. */
const PATIENCE_MS = 60_000

const { waitFor } = vi
vi.waitFor = (callback, options) =>
  waitFor(callback, { timeout: PATIENCE_MS, ...(typeof options === 'number' ? { timeout: options } : options) })
