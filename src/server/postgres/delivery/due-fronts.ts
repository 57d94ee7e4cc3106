import { sql } from 'kysely'
import type { ClaimRef, NextDeliveries, NextRequest } from '../../../core/domain/delivery/dispatch-round.ts'
import {
  ASKED_FOR,
  findNextDeliveries,
  type NextFound,
  type NextLook,
  type NextRow,
  nextWoken,
  UNTRIED,
  waitingBesides,
} from '../../../core/store/delivery/next-deliveries.ts'
import { decodeSkipped, findSkipped } from '../../../core/store/delivery/settlements.ts'
import type { Session } from '../../../core/store/engine.ts'
import { statement } from '../../../core/store/statement.ts'
import { rawStatement } from '../postgres-dialect.ts'

/** How long a `Front` is used, in milliseconds. A delivery that is planned for a time before the front may have to wait that long. */
const FRONT_LASTS_MS = 2000
/** How far the front lies before the first due delivery, in milliseconds. A transaction that queues an earlier delivery may commit this late. */
const LATE_MS = 3000

/** The positions in the index where the due deliveries of an endpoint begin. */
interface Front {
  readonly takenAtMs: number
  readonly round: number
  /** The first planned time among deliveries that were not attempted since they were queued, epoch milliseconds. */
  readonly untriedFromMs: number
  /** The first planned time among deliveries that were attempted since the endpoint was woken. */
  readonly retriedFromMs: number
  /** Whether there are deliveries that were last attempted before the endpoint was woken. */
  readonly hasWoken: boolean
}

export type DueFronts = ReturnType<typeof createDueFronts>

/**
 * Begins each search for due deliveries at the first due one (the front), not at the start of the index. While any transaction stays open,
 * the index keeps the entries of all deliveries that have ended since, and a search from the start steps over all of them. So only the
 * search for the front itself begins at the start, at most every two seconds.
 */
export function createDueFronts() {
  const fronts = new Map<string, Front>()
  function knownFront({ endpointId, round, nowMs }: NextRequest): Front | null {
    const front = fronts.get(endpointId)
    const ageMs = nowMs - (front?.takenAtMs ?? 0)
    return front !== undefined && front.round === round && ageMs >= 0 && ageMs < FRONT_LASTS_MS ? front : null
  }
  return {
    /** See `WriteTx.findNextDeliveries`. */
    async find(session: Session, request: NextRequest): Promise<NextDeliveries> {
      const known = knownFront(request)
      const front = known ?? (await readFront(session, request))
      fronts.set(request.endpointId, front)
      const lookAgainAtMs = known === null ? null : known.takenAtMs + FRONT_LASTS_MS
      return await findNextDeliveries(session, request, async (look) => ({ ...(await findFrom(session, front, look)), lookAgainAtMs }))
    },
    /** Call it when a delivery may be due before the front, or after a rollback of the transaction that read the front. */
    forget(endpointId: string) {
      fronts.delete(endpointId)
    },
  }
}

const first = rawStatement<{ endpointId: number; round: number }>()(
  (p) => sql<{ untried: number | null; retried: number | null; has_woken: boolean }>`
    select
      (select min(next_attempt_at_ms) from delivery where endpoint_id = ${p.endpointId} and state = 1 and round = ${sql.lit(UNTRIED)}) as untried,
      (select min(next_attempt_at_ms) from delivery where endpoint_id = ${p.endpointId} and state = 1 and round = ${p.round}) as retried,
      exists (select 1 from delivery where endpoint_id = ${p.endpointId} and state = 1 and round > ${sql.lit(UNTRIED)} and round < ${p.round}) as has_woken`,
)

async function readFront(session: Session, { endpointId, round, nowMs }: NextRequest): Promise<Front> {
  const [row] = await session.all(first, { endpointId: Number(endpointId), round })
  const from = (firstMs: number | null | undefined) => Math.min(firstMs ?? nowMs, nowMs) - LATE_MS
  return {
    takenAtMs: nowMs,
    round,
    untriedFromMs: from(row?.untried),
    retriedFromMs: from(row?.retried),
    hasWoken: row?.has_woken === true,
  }
}

/** Reads three groups of deliveries in one statement, each in the order of the index: asked for by an operator, untried, and retried. */
const nextFromFront = statement<NextLook & { untriedFromMs: number; retriedFromMs: number }>()((db, p, dialect) => {
  const asked = waitingBesides(db, p, dialect, 'is due').where('round', '=', ASKED_FOR).orderBy('next_attempt_at_ms')
  const untried = waitingBesides(db, p, dialect, 'is due')
    .where('round', '=', UNTRIED)
    .where('next_attempt_at_ms', '>=', p.untriedFromMs)
    .orderBy('next_attempt_at_ms')
  const retried = waitingBesides(db, p, dialect, 'by its time')
    .where('round', '=', p.round)
    .where('next_attempt_at_ms', '>=', p.retriedFromMs)
    .orderBy('next_attempt_at_ms')
  return db
    .selectFrom(asked.as('asked'))
    .selectAll()
    .unionAll(db.selectFrom(untried.as('untried')).selectAll())
    .unionAll(db.selectFrom(retried.as('retried')).selectAll())
})

async function findFrom(
  session: Session,
  { untriedFromMs, retriedFromMs, hasWoken }: Front,
  look: NextLook,
): Promise<Omit<NextFound, 'lookAgainAtMs'>> {
  const [rows, woken] = await Promise.all([
    session.all(nextFromFront, { ...look, untriedFromMs, retriedFromMs }),
    hasWoken ? session.all(nextWoken, look) : [],
  ])
  const isUntried = ({ round }: NextRow) => round < look.round
  return { untried: rows.filter(isUntried), woken, retried: rows.filter((row) => !isUntried(row)) }
}

const marked = rawStatement<{ endpointIds: readonly number[] }>()(
  (p) => sql<{ id: number; endpoint_id: number }>`
    select id, endpoint_id from delivery where state < 2 and reason is not null and state in (0, 1)
      and (endpoint_id = any(${p.endpointIds}::bigint[]) or not exists (select 1 from role where name = 'dispatcher/' || endpoint_id))`,
)

/**
 * See `WriteTx.findSkipped`. Also finds deliveries to endpoints to which no replica sends now, because no other replica would find them.
 * This is safe: none of those deliveries is being sent, and no replica claims a skipped delivery later.
 */
export async function findSkippedOver(session: Session, endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]> {
  if (endpointIds === null) return await findSkipped(session, null)
  return (await session.all(marked, { endpointIds: endpointIds.map(Number) })).map(decodeSkipped)
}
