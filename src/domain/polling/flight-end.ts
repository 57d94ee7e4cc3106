/**
 * How a flight ended, for those who waited. `recorded`: the carrier's answer is stored. `not_found`: the carrier does not know the
 * identifier. `unavailable`: the carrier could not be asked. `unusable`: its answer could not be used. `failed`: the flight itself failed.
 */
export interface FlightEnd {
  readonly kind: 'recorded' | 'not_found' | 'unavailable' | 'unusable' | 'failed'
  readonly retryAfterMs: number | null
}
