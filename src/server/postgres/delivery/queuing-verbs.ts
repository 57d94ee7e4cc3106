import { sql } from 'kysely'
import type { WriteTx } from '../../../core/store/write-store.ts'
import type { TransactionContents } from '../history/postgres-contents.ts'
import type { PostgresSession } from '../postgres-session.ts'
import { rawStatement } from '../raw-statement.ts'
import type { TransactionEnd } from '../transaction-end.ts'
import { readFeedInSets } from './feed-in-sets.ts'
import { enqueueComposed, enqueueDeliveries, lockQueues } from './queue-deliveries.ts'
import type { TransactionEndpoints } from './transaction-endpoints.ts'

/** Fails as a conflict (by a division by zero) if another transaction has queued events for the endpoint since this one read the endpoint. */
const advanceQueue = rawStatement<{ id: number; before: number; next: number }>()(
  (p) => sql`
    update endpoint set queued_to = ${p.next}::bigint / (case when queued_to = ${p.before}::bigint then 1 else 0 end) where id = ${p.id}::bigint`,
)
const endQueue = rawStatement<{ id: number; next: number }>()(
  (p) => sql`
    update endpoint set queued_to = null where id = ${p.id}::bigint and not exists (select 1 from feed where sequence > ${p.next}::bigint)`,
)
const showEnd = rawStatement<{ id: number }>()(
  (p) => sql`
    update counter set version = version + 1
    where name = 'sequence' and exists (select 1 from endpoint where id = ${p.id}::bigint and queued_to is null)`,
)

export interface QueuingParts {
  readonly session: PostgresSession
  readonly contents: TransactionContents
  readonly endpoints: TransactionEndpoints
  readonly end: TransactionEnd
}

/** Makes those methods of a transaction that queue deliveries of operator events, or of events that are already in the feed. */
export function queuingVerbs({ session, contents, endpoints, end }: QueuingParts) {
  return {
    readFeedEntries: (request) => readFeedInSets({ session, contents }, request),
    async queueComposed({ body, ...delivery }) {
      const sequence = end.give()
      lockQueues(session, delivery.endpointId, [delivery.parcelId])
      end.whenNumbered(() => {
        enqueueComposed(session, [{ sequence, body }])
        enqueueDeliveries(session, [{ ...delivery, sequence, inboxId: null, toldIn: null }])
      })
    },
    async queueFeed({ composed, deliveries }) {
      enqueueComposed(session, composed)
      enqueueDeliveries(session, deliveries)
    },
    /**
     * Other transactions may have added events since the feed was read. So look for events after `next` once more, right before the commit
     * and with the counter locked. If there are none, the endpoint has caught up. Then raise the version of the endpoints, so that the next
     * recording transaction reads the endpoint again.
     */
    async saveQueuedTo({ endpoint, queuedTo }, { next, ended }) {
      const id = Number(endpoint.id)
      session.enqueueWrite(advanceQueue, { id, before: queuedTo, next })
      endpoints.stay()
      if (ended) {
        end.whenNumbered(() => {
          session.enqueueWrite(endQueue, { id, next })
          session.enqueueWrite(showEnd, { id })
        })
      }
      return false
    },
  } satisfies Partial<WriteTx>
}
