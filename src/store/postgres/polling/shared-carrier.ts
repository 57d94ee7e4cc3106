import type { SharedFlights } from '../../../flow/history/ports.ts'
import type { SharedCarrier } from '../../../flow/polling/ports.ts'
import { createPostgresWriter } from '../postgres.ts'
import { openPostgres } from '../postgres-engine.ts'
import { watchServer } from '../server-watch.ts'
import { createBudgetStore } from './budget-store.ts'
import { createSharedToken } from './carrier-token.ts'
import { createSharedFlights } from './flights.ts'

/** Their own, so that no call waits behind a batch of pushes. */
const CONNECTIONS = 2

/** What replicas share about the carrier, on a database that has its tables. `watch`: over all connections of the relay; absent: one for this alone. */
export function openSharedCarrier(
  place: string,
  watch = watchServer(place),
): SharedCarrier & { readonly flights: SharedFlights; close(): Promise<void> } {
  const { pool, options, close } = openPostgres(place, CONNECTIONS, watch)
  const writer = createPostgresWriter(pool, options)
  return { budget: createBudgetStore(writer), token: createSharedToken(writer), flights: createSharedFlights(writer), close }
}
