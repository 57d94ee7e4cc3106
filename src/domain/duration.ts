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
