const SIZE_UNITS = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 } as const

export const SIZE = /^(\d{1,9})(B|KB|MB|GB)$/
export const FACTOR = /^x(\d{1,3}(?:\.\d{1,3})?)$/

/** Parses a size such as `64MB` to bytes (1KB is 1024 bytes); null: it is no size. */
export function parseSize(text: string): number | null {
  const [, count, name] = SIZE.exec(text) ?? []
  const unit = Object.entries(SIZE_UNITS).find(([unitName]) => unitName === name)
  return unit === undefined ? null : Number(count) * unit[1]
}

/** Formats bytes in the largest unit of which they are a whole number. */
export function formatSize(bytes: number): string {
  const [name, size] = Object.entries(SIZE_UNITS).findLast(([, unit]) => bytes >= unit && bytes % unit === 0) ?? ['', 1]
  return `${bytes / size}${name}`
}

export function parseFactor(text: string): number | null {
  const [, factor] = FACTOR.exec(text) ?? []
  return factor === undefined ? null : Number(factor)
}
