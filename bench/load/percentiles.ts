export interface Percentiles {
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

/** Computes percentiles by nearest rank, so each is a measured value. */
export function percentiles(values: Float64Array): Percentiles {
  const sorted = values.toSorted()
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (lower + upper) / 2
}

/** A growing series of measured values. */
export function createSeries() {
  let values = new Float64Array(16 * 1024)
  let count = 0
  return {
    add(value: number) {
      if (count === values.length) {
        const larger = new Float64Array(values.length * 2)
        larger.set(values)
        values = larger
      }
      values[count++] = value
    },
    percentiles: () => percentiles(values.subarray(0, count)),
  }
}
