import { setTimeout as pause } from 'node:timers/promises'
import type { SharedFlights } from '../../flow/history/ports.ts'
import type { SharedCarrier } from '../../flow/polling/ports.ts'
import { createSharedBudget } from './carrier-budget.ts'
import { createSharedToken } from './carrier-token.ts'
import { createSharedFlights } from './flights.ts'
import { createPostgresWriter } from './postgres.ts'
import { openPostgres } from './postgres-engine.ts'

/** Their own, so that no call waits behind a batch of pushes. */
const CONNECTIONS = 2

/** A connection that is still being made to a server that says nothing would hold up a stop for longer. */
const CLOSE_MS = 1500

/** What replicas share about the carrier, on a database that has its tables. */
export function openSharedCarrier(place: string): SharedCarrier & { readonly flights: SharedFlights; close(): Promise<void> } {
  const { pool, options, close } = openPostgres(place, CONNECTIONS)
  const writer = createPostgresWriter(pool, options)
  const closeSoon = () => Promise.race([close(), pause(CLOSE_MS, undefined, { ref: false })])
  return { budget: createSharedBudget(writer), token: createSharedToken(writer), flights: createSharedFlights(writer), close: closeSoon }
}
