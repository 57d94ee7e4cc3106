/**
 * How a flight ended. A flight is one fetch from the carrier, for all apps that ask for the same identifier while it runs. `recorded`: the
 * answer is stored. `not_found`: the carrier does not know the identifier. `unavailable`: the carrier could not be asked. `unusable`: its
 * answer could not be used. `failed`: the relay itself failed.
 */
export interface FlightEnd {
  readonly kind: 'recorded' | 'not_found' | 'unavailable' | 'unusable' | 'failed'
  readonly retryAfterMs: number | null
}
