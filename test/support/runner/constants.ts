/** The time at which most tests begin. */
export const NOON = Date.UTC(2026, 2, 1, 12)

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** An address at which nothing listens, for tests that are not about polls. */
export const NO_CARRIER = 'http://127.0.0.1:9'
