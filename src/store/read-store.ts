import { deriveEntries, instantsTie, orderHistory } from '../domain/history.ts'
import { presentParcel } from '../domain/parcel-record.ts'
import { lackedLanguage } from '../domain/pull-response.ts'
import type { ParcelView, ReadSide } from '../flow/ports.ts'
import { loadAnswers } from './answers.ts'
import { type Contents, createContents } from './contents.ts'
import { listEndpoints } from './endpoints.ts'
import type { ReadEngine, Session } from './engine.ts'
import { countQuarantined } from './inbox.ts'
import { findIdentifiers, loadIdentifiers, loadParcel } from './parcels.ts'
import { loadLanguagesAsked } from './settings.ts'
import { loadOrder, loadSightings } from './sightings.ts'
import { statement } from './statement.ts'

const parcels = statement()((db) => db.selectFrom('parcel').select((row) => row.fn.countAll<number>().as('count')))
const watched = statement()((db) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', 'is not', null),
)
const overdue = statement<{ nowMs: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', '<=', p.nowMs),
)

/** Reads what has been committed, on a connection of its own. */
export function createReadStore(engine: ReadEngine): ReadSide {
  const { session } = engine
  const contents = createContents(session)
  return {
    findParcel: (identifier) => engine.snapshot(() => findParcel(session, contents, identifier)),
    async counts(nowMs) {
      const [all] = await session.all(parcels, {})
      const [polled] = await session.all(watched, {})
      const [late] = await session.all(overdue, { nowMs })
      return {
        parcels: all?.count ?? 0,
        watched: polled?.count ?? 0,
        overdue: late?.count ?? 0,
        quarantined: await countQuarantined(session),
      }
    },
    listEndpoints: () => listEndpoints(session),
    async ping() {
      await session.all(parcels, {})
    },
    close: () => engine.close(),
  }
}

async function findParcel(session: Session, contents: Contents, identifier: string): Promise<ParcelView | null> {
  const [found] = await findIdentifiers(session, [identifier])
  if (found === undefined) return null
  const { parcelId } = found
  const state = await loadParcel(session, parcelId)
  const entries = deriveEntries(await loadSightings(session, contents, parcelId, null))
  const ordered = orderHistory(entries, instantsTie(entries) ? await loadOrder(session, parcelId) : [])
  const trackingIds = (await loadIdentifiers(session, parcelId)).filter((row) => row.is_tracking_id === 1).map((row) => row.value)
  const asked = await loadLanguagesAsked(session, parcelId)
  return {
    parcelId,
    ...presentParcel(ordered, await loadAnswers(session, parcelId), trackingIds),
    heardAtMs: state.heardAtMs,
    watched: state.nextPollAtMs !== null,
    languagesAsked: asked
      .filter(
        ({ language, sequence }) =>
          !lackedLanguage(
            entries.filter((entry) => entry.sequence > sequence),
            language,
          ),
      )
      .map(({ language }) => language),
  }
}
