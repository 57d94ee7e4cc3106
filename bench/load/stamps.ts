/** Prefix of the due time, which stands in an event's location field. */
const STAMP = '"location":"due '

const LOOKS = 1000

/**
 * Offset from this process's clock to the machine's clock, which all processes share. If the process is preempted between the two readings, the
 * offset is too small by milliseconds, so the maximum of many is right.
 */
const SINCE_BOOT_MS = Math.max(...Array.from({ length: LOOKS }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()))

/** Stamps an event, so that its receiver can compute its age. `dueMs` is a time of `performance.now()`. */
export function locationOf(dueMs: number): string {
  return `due ${(SINCE_BOOT_MS + dueMs).toFixed(3)}`
}

/** Returns how long ago the event was due, in milliseconds; null if it has no stamp. */
export function ageOf(body: Buffer): number | null {
  const at = body.indexOf(STAMP)
  if (at === -1) return null
  const from = at + STAMP.length
  return SINCE_BOOT_MS + performance.now() - Number(body.toString('latin1', from, body.indexOf('"', from)))
}
