import { FAILURE_GROUPS_MAX, FAILURES_COUNT_FOR_MS, type FailureGroup, type FailureNote } from '../../domain/delivery/dispatch-round.ts'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'

const add = statement<{
  endpointId: number
  digest: string
  status: number | null
  reason: string | null
  answer: Uint8Array | null
  count: number
  firstAtMs: number
  lastAtMs: number
  deliveryId: number
  staleBeforeMs: number
}>()((db, p, { greatest, least }) =>
  db
    .insertInto('failure')
    .values({
      endpoint_id: p.endpointId,
      digest: p.digest,
      status: p.status,
      reason: p.reason,
      answer: p.answer,
      count: p.count,
      first_at_ms: p.firstAtMs,
      last_at_ms: p.lastAtMs,
      delivery_id: p.deliveryId,
    })
    .onConflict((conflict) =>
      conflict.columns(['endpoint_id', 'digest']).doUpdateSet((row) => {
        const isStale = row('failure.last_at_ms', '<', p.staleBeforeMs)
        const sum = row('failure.count', '+', row.ref('excluded.count'))
        return {
          answer: row.ref('excluded.answer'),
          delivery_id: row.ref('excluded.delivery_id'),
          count: row.case().when(isStale).then(row.ref('excluded.count')).else(sum).end(),
          first_at_ms: row
            .case()
            .when(isStale)
            .then(row.ref('excluded.first_at_ms'))
            .else(least(row.ref('failure.first_at_ms'), row.ref('excluded.first_at_ms')))
            .end(),
          last_at_ms: greatest(row.ref('failure.last_at_ms'), row.ref('excluded.last_at_ms')),
        }
      }),
    ),
)
const forgetOldest = statement<{ endpointId: number }>()((db, p) =>
  db
    .deleteFrom('failure')
    .where('endpoint_id', '=', p.endpointId)
    .where('last_at_ms', '<', (of) =>
      of
        .selectFrom('failure as kept')
        .select('kept.last_at_ms')
        .where('kept.endpoint_id', '=', p.endpointId)
        .orderBy('kept.last_at_ms', 'desc')
        .limit(1)
        .offset(FAILURE_GROUPS_MAX - 1),
    ),
)
const forgetAll = statement<{ endpointId: number }>()((db, p) => db.deleteFrom('failure').where('endpoint_id', '=', p.endpointId))

/** Adds failures to the groups of equal failures of their endpoints. */
export function noteFailures(session: Session, failures: readonly FailureNote[], nowMs: number): void {
  for (const { endpointId, answerStart, ...failure } of failures) {
    const answer = answerStart.byteLength === 0 ? null : answerStart
    session.enqueueWrite(add, { ...failure, endpointId: Number(endpointId), answer, staleBeforeMs: nowMs - FAILURES_COUNT_FOR_MS })
  }
  for (const endpointId of new Set(failures.map((failure) => Number(failure.endpointId))))
    session.enqueueWrite(forgetOldest, { endpointId })
}

/** Deletes the failures of an endpoint that is removed. */
export function forgetFailures(session: Session, endpointId: number): void {
  session.enqueueWrite(forgetAll, { endpointId })
}

const ofEndpoint = statement<{ endpointId: number; sinceMs: number; limit: number }>()((db, p) =>
  db
    .selectFrom('failure')
    .selectAll()
    .where('endpoint_id', '=', p.endpointId)
    .where('last_at_ms', '>=', p.sinceMs)
    .orderBy('last_at_ms', 'desc')
    .limit(p.limit),
)

/** Lists the groups of an endpoint that have a failure since `sinceMs`, latest first. */
export async function listFailures(
  session: Session,
  { endpointId, sinceMs }: { readonly endpointId: string; readonly sinceMs: number },
): Promise<readonly FailureGroup[]> {
  const rows = await session.all(ofEndpoint, { endpointId: Number(endpointId), sinceMs, limit: FAILURE_GROUPS_MAX })
  return rows.map(decodeFailure)
}

const lastOfAll = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('failure')
    .selectAll()
    .where('endpoint_id', 'in', oneOf(p.ids))
    .where('last_at_ms', '=', (of) =>
      of
        .selectFrom('failure as last')
        .select((row) => row.fn.max('last.last_at_ms').as('at'))
        .whereRef('last.endpoint_id', '=', 'failure.endpoint_id'),
    ),
)

/** Returns, by endpoint id, the group with the latest failure of each endpoint. */
export async function lastFailures(session: Session, endpointIds: readonly string[]): Promise<ReadonlyMap<string, FailureGroup>> {
  if (endpointIds.length === 0) return new Map()
  const rows = await session.all(lastOfAll, { ids: endpointIds.map(Number) })
  return new Map(rows.map((row) => [String(row.endpoint_id), decodeFailure(row)]))
}

function decodeFailure(row: Tables['failure']): FailureGroup {
  return {
    status: row.status,
    reason: row.reason,
    answerStart: row.answer ?? new Uint8Array(),
    count: row.count,
    firstAtMs: row.first_at_ms,
    lastAtMs: row.last_at_ms,
    deliveryId: row.delivery_id,
  }
}
