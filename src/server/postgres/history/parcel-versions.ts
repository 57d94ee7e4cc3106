import { sql } from 'kysely'
import type { Session } from '../../../core/store/engine.ts'
import { rawStatement } from '../postgres-dialect.ts'

/** The most parcels in a query. It is low because each caller waits for the whole query. */
const PARCELS_MAX = 256
/** With two queries at a time, one runs while the next is sent. With more at a time, each query would only serve fewer calls. */
export const QUERIES_AT_ONCE = 2

const versionsOf = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql<{ id: number; version: number }>`select id, version from parcel where id = any(${p.ids}::bigint[])`,
)

type Versions = ReadonlyMap<number, number>

interface Batch {
  readonly parcelIds: Set<number>
  readonly versions: Promise<Versions>
  /** Parcels that are asked for later belong to another query. */
  send(): void
}

/**
 * Makes a function that reads the version of a parcel. One query serves many calls. It is sent only after these calls, so an answer is never
 * older than its call.
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
