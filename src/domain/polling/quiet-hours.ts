/** Hours of the day without scheduled polls. If `to` is before `from`, the quiet hours include midnight. */
export interface QuietHours {
  /** Written as `HH:MM`, like `to`. */
  readonly from: string
  readonly to: string
  /** An IANA time zone. */
  readonly zone: string
}

/** Whether `nowMs` (epoch milliseconds) is within the quiet hours, by the time of day in their zone. */
export function isQuiet(nowMs: number, { from, to, zone }: QuietHours): boolean {
  const time = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(nowMs)
  return from <= to ? from <= time && time < to : from <= time || time < to
}
