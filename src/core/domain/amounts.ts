// Amounts as text for people: on pages, on a terminal, in messages.

/** Formats a whole number with commas: `4,121,006`. */
export function countText(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** Puts a number before the right form of a noun: `1`, `event waits` and `events wait` give `1 event waits`. */
export function counted(count: number, one: string, many: string): string {
  return `${countText(count)} ${count === 1 ? one : many}`
}

const SIZES = ['kilobyte', 'megabyte', 'gigabyte', 'terabyte'].map(
  (unit) => new Intl.NumberFormat('en', { style: 'unit', unit, maximumSignificantDigits: 3 }),
)

/** Formats a number of bytes in a unit that leaves few digits: `612 MB`, `8.2 GB`. A kilobyte has 1,024 bytes, as in the config. */
export function bytesText(bytes: number): string {
  const at = Math.min(SIZES.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10) - 1))
  return SIZES[at]?.format(bytes / 1024 ** (at + 1)) ?? ''
}

/** Formats a length of time with at most two units: `41 s`, `4 min 10 s`, `12 min`, `4 h 12 min`, `3 d 4 h`. */
export function spanText(lengthMs: number): string {
  const seconds = Math.round(lengthMs / 1000)
  if (seconds < 1) return 'less than a second'
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return minutes < 5 && seconds % 60 > 0 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 > 0 ? `${hours} h ${minutes % 60} min` : `${hours} h`
  const days = Math.floor(hours / 24)
  return days < 14 && hours % 24 > 0 ? `${days} d ${hours % 24} h` : `${days} d`
}

/** Says how long after its event a push came: `12 min after the event`. */
export function latenessText(eventAtMs: number, cameAtMs: number): string {
  const length = spanText(Math.abs(cameAtMs - eventAtMs))
  return cameAtMs < eventAtMs ? `${length} before the time of its event` : `${length} after the event`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

/** The written form of a duration: a whole number and its unit. */
export const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/

/** Parses a duration such as `250ms`, `10s`, `5m`, `2h` or `30d` to milliseconds. Null: the text is not a duration. */
export function parseDuration(text: string): number | null {
  const [, count, name] = DURATION.exec(text) ?? []
  const unit = UNITS.find(([unitName]) => unitName === name)
  return unit === undefined ? null : Number(count) * unit[1]
}

/** Writes a duration in the largest unit that gives a whole number, such as `90s` for one and a half minutes. */
export function formatDuration(ms: number): string {
  const [name, size] = UNITS.find(([, unitMs]) => ms !== 0 && ms % unitMs === 0) ?? (['ms', 1] as const)
  return `${ms / size}${name}`
}
