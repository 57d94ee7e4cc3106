/** What stands before the time at which an event was due to be pushed, in the place of its location. */
const STAMP = '"location":"due '

const LOOKS = 1000

/**
 * From this process's own clock to that of the machine, which all processes share. Between the two looks it may have to wait for a processor,
 * and what it finds is then too little, by milliseconds: the most of many is right.
 */
const SINCE_BOOT_MS = Math.max(...Array.from({ length: LOOKS }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()))

/** Written into an event, so that whoever gets it knows how long it took. `dueMs` is a time of `performance.now()`. */
export function locationOf(dueMs: number): string {
  return `due ${(SINCE_BOOT_MS + dueMs).toFixed(3)}`
}

/** How long ago the event was due, in milliseconds; null: it is not stamped. */
export function ageOf(body: Buffer): number | null {
  const at = body.indexOf(STAMP)
  if (at === -1) return null
  const from = at + STAMP.length
  return SINCE_BOOT_MS + performance.now() - Number(body.toString('latin1', from, body.indexOf('"', from)))
}
