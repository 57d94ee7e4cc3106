import type { SharedCarrier, SharedFlights } from '../../../core/store/polling/shared-carrier.ts'
import { createPostgresWriter } from '../postgres.ts'
import { openPostgres } from '../postgres-engine.ts'
import { watchServer } from '../server-watch.ts'
import { createBudgetStore } from './budget-store.ts'
import { createSharedToken } from './carrier-token.ts'
import { createSharedFlights } from './flights.ts'

/** The number of connections. They are separate from those of the store, so that no call to the carrier waits for a batch of pushes. */
const CONNECTIONS = 2

/**
 * Opens the budget, token and flights that replicas share. Their tables must exist. `watch`: the `ServerWatch` of the relay; absent: a new one
 * is made.
 */
export function openSharedCarrier(
  address: string,
  watch = watchServer(address),
): SharedCarrier & { readonly flights: SharedFlights; close(): Promise<void> } {
  const { pool, options, close } = openPostgres(address, CONNECTIONS, watch)
  const writer = createPostgresWriter(pool, options)
  return { budget: createBudgetStore(writer), token: createSharedToken(writer), flights: createSharedFlights(writer), close }
}
