import type { SharedFlights } from '../../../flow/history/ports.ts'
import type { SharedCarrier } from '../../../flow/polling/ports.ts'
import { createPostgresWriter } from '../postgres.ts'
import { openPostgres } from '../postgres-engine.ts'
import { watchServer } from '../server-watch.ts'
import { createBudgetStore } from './budget-store.ts'
import { createSharedToken } from './carrier-token.ts'
import { createSharedFlights } from './flights.ts'

/** These connections are separate, so that no call waits for a batch of pushes. */
const CONNECTIONS = 2

/**
 * The budget, token and flights that replicas share. The tables must exist. `watch`: the watch over all connections of the relay; absent: a
 * separate one.
 */
export function openSharedCarrier(
  address: string,
  watch = watchServer(address),
): SharedCarrier & { readonly flights: SharedFlights; close(): Promise<void> } {
  const { pool, options, close } = openPostgres(address, CONNECTIONS, watch)
  const writer = createPostgresWriter(pool, options)
  return { budget: createBudgetStore(writer), token: createSharedToken(writer), flights: createSharedFlights(writer), close }
}
