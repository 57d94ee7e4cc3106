import { InvalidArgumentError } from 'commander'
import { parseDuration, spanText } from '../../../core/domain/amounts.ts'

/** Says how long ago `instant` was, such as `12 min`; empty for null. */
export function age(instant: string | null, nowMs = Date.now()): string {
  return instant === null ? '' : spanText(Math.max(0, nowMs - Date.parse(instant)))
}

/** Says how far ahead a time is, such as `in 12 min`; `now`: the time has come. */
export function until(instant: string, nowMs = Date.now()): string {
  const aheadMs = Date.parse(instant) - nowMs
  return aheadMs <= 0 ? 'now' : `in ${spanText(aheadMs)}`
}

/** Reads a time: an instant with its time zone, or a duration such as `2h`, which means two hours ago. Null: the text is neither. */
function readTime(text: string, nowMs = Date.now()): string | null {
  const agoMs = parseDuration(text)
  if (agoMs !== null) return new Date(nowMs - agoMs).toISOString()
  return /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString() : null
}

export function readTimeOption(text: string): string {
  const time = readTime(text)
  if (time === null) throw new InvalidArgumentError('It must be a time such as 2026-03-01T10:00:00Z, or how long ago: 2h.')
  return time
}
