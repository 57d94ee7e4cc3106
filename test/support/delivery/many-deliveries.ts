import { changeStoredRows } from '../store/stored-rows.ts'

/**
 * Writes thousands of deliveries straight into a store: `eventsEach` for each of many unknown parcels, one per millisecond. `state` is the
 * stored number.
 */
export async function writeDeliveries(
  path: string,
  {
    endpointId,
    count,
    state,
    from = 1,
    eventsEach = 4,
  }: { endpointId: string; count: number; state: number; from?: number; eventsEach?: number },
): Promise<void> {
  await changeStoredRows(
    path,
    `with recursive nth(n) as (select ${from} union all select n + 1 from nth where n < ${from + count - 1})
     insert into delivery (endpoint_id, parcel_id, sequence, previous_sequence, inbox_id, state, attempts, queued_at_ms, next_attempt_at_ms, settled_at_ms)
     select ?, 1000000 + (n - 1) / ${eventsEach}, n, 0, null, 
       case when ${state} >= 2 then ${state} when (n - 1) % ${eventsEach} = 0 then 1 else 0 end, 1, n, n,
       case when ${state} < 2 then null else n end from nth`,
    Number(endpointId),
  )
  const composed =
    "insert into composed_event (sequence, body) select sequence, '{}' from delivery where true group by sequence on conflict do nothing"
  await changeStoredRows(path, composed)
}
