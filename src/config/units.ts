const DURATION_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

const SIZE_UNITS = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 } as const

export const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/
export const SIZE = /^(\d{1,9})(B|KB|MB|GB)$/
export const FACTOR = /^x(\d{1,3}(?:\.\d{1,3})?)$/

/** Milliseconds of `250ms`, `10s`, `5m`, `2h`, `30d`; `null` for everything else. */
export function parseDuration(text: string): number | null {
  const [, count, name] = DURATION.exec(text) ?? []
  const unit = DURATION_UNITS.find(([unitName]) => unitName === name)
  return unit === undefined ? null : Number(count) * unit[1]
}

/** The same in the largest unit that tells it exactly. */
export function formatDuration(ms: number): string {
  const [name, size] = DURATION_UNITS.find(([, unitMs]) => ms !== 0 && ms % unitMs === 0) ?? (['ms', 1] as const)
  return `${ms / size}${name}`
}

/** Bytes of `64MB`; a KB is 1024 bytes. */
export function parseSize(text: string): number | null {
  const [, count, name] = SIZE.exec(text) ?? []
  const unit = Object.entries(SIZE_UNITS).find(([unitName]) => unitName === name)
  return unit === undefined ? null : Number(count) * unit[1]
}

export function parseFactor(text: string): number | null {
  const [, factor] = FACTOR.exec(text) ?? []
  return factor === undefined ? null : Number(factor)
}
