import { sql } from 'kysely'
import type { Session } from '../../engine.ts'
import { rawStatement } from '../raw-statement.ts'

/** More in one query would make each of them wait for all. */
const PARCELS_MAX = 256
/** While one query is under way the next is sent; more at a time would be smaller ones. */
export const QUERIES_AT_ONCE = 2

const versionsOf = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql<{ id: number; version: number }>`select id, version from parcel where id = any(${p.ids}::bigint[])`,
)

type Versions = ReadonlyMap<number, number>

/** What is asked in one query. */
interface Batch {
  readonly parcelIds: Set<number>
  /** The query that all of them wait for, once the first has come. */
  readonly versions: Promise<Versions>
  /** Sends the query: nobody joins it any more. */
  send(): void
}

/**
 * Asks for the versions of parcels, in one query for all that are asked in the same turn of the event loop, and for those that come while as many queries as
 * may be are under way. Each is asked by a query that is sent after the call, so the answer is no older than that.
 */
export function createParcelVersions(session: Pick<Session, 'all'>): (parcelId: number) => Promise<number | null> {
  const batches: Batch[] = []
  let underWay = 0
  let isPlanned = false

  const read = async (parcelIds: ReadonlySet<number>, sent: Promise<void>): Promise<Versions> => {
    await sent
    const rows = await session.all(versionsOf, { ids: [...parcelIds] })
    return new Map(rows.map(({ id, version }) => [id, version]))
  }

  function open(): Batch {
    const { promise: sent, resolve: send } = Promise.withResolvers<void>()
    const parcelIds = new Set<number>()
    const versions = read(parcelIds, sent)
    const ended = () => {
      underWay -= 1
      plan()
    }
    versions.then(ended, ended)
    const batch = { parcelIds, versions, send }
    batches.push(batch)
    return batch
  }

  function plan(): void {
    if (isPlanned || batches.length === 0 || underWay >= QUERIES_AT_ONCE) return
    isPlanned = true
    setImmediate(() => {
      isPlanned = false
      for (const batch of batches.splice(0, QUERIES_AT_ONCE - underWay)) {
        underWay += 1
        batch.send()
      }
    })
  }

  return async (parcelId) => {
    const last = batches.at(-1)
    const batch = last === undefined || last.parcelIds.size >= PARCELS_MAX ? open() : last
    batch.parcelIds.add(parcelId)
    plan()
    return (await batch.versions).get(parcelId) ?? null
  }
}
