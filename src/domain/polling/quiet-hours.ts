/** Hours of the day without scheduled polls. If `to` is before `from`, they last over midnight. */
export interface QuietHours {
  /** `HH:MM` */
  readonly from: string
  readonly to: string
  /** An IANA time zone. */
  readonly zone: string
}

/** Whether an instant (epoch milliseconds) falls within quiet hours, by the clocks of their zone. */
export function isQuiet(nowMs: number, { from, to, zone }: QuietHours): boolean {
  const time = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(nowMs)
  return from <= to ? from <= time && time < to : from <= time || time < to
}
