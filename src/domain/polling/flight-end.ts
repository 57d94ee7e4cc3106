/** How a flight ended, for those who waited for it. */
export interface FlightEnd {
  readonly kind: 'recorded' | 'not_found' | 'unavailable' | 'unusable' | 'failed'
  readonly retryAfterMs: number | null
}
