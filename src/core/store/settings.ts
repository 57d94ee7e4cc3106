import type { EndedSession } from '../domain/admin/token-keys.ts'
import type { Session } from './engine.ts'
import { statement } from './statement.ts'

export const SEQUENCE = 'sequence'

export const TOMBSTONE_KEY = 'tombstone-key'

/** The setting that says when retention has last deleted a parcel, epoch milliseconds. */
export const RETIRED_AT = 'parcels-retired-at'

/** The setting that holds the tombstones with which a database was marked as restored. (SQLite has them in a file beside the database.) */
export const RESTORED_TOMBSTONES = 'restored-tombstones'

const find = statement<{ name: string }>()((db, p) => db.selectFrom('setting').select('value').where('name', '=', p.name))
const upsert = statement<{ name: string; value: Uint8Array }>()((db, p) =>
  db
    .insertInto('setting')
    .values({ name: p.name, value: p.value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: p.value })),
)

export async function loadSetting(session: Session, name: string): Promise<Uint8Array | null> {
  const [row] = await session.all(find, { name })
  return row?.value ?? null
}

/** Returns 0 if the setting was never written. */
export async function loadNumber(session: Session, name: string): Promise<number> {
  return Number(Buffer.from((await loadSetting(session, name)) ?? '0').toString())
}

const insert = statement<{ name: string; value: Uint8Array }>()((db, p) =>
  db
    .insertInto('setting')
    .values({ name: p.name, value: p.value })
    .onConflict((conflict) => conflict.column('name').doNothing()),
)

/** Stores a value unless the setting already has one; returns the stored value. */
export async function makeSetting(session: Session, name: string, value: Uint8Array): Promise<Uint8Array> {
  await session.run(insert, { name, value })
  return (await loadSetting(session, name)) ?? value
}

export async function saveSetting(session: Session, name: string, value: Uint8Array): Promise<void> {
  await session.run(upsert, { name, value })
}

const remove = statement<{ name: string }>()((db, p) => db.deleteFrom('setting').where('name', '=', p.name))

export function removeSetting(session: Session, name: string): void {
  session.enqueueWrite(remove, { name })
}

const languageAsked = statement<{ parcelId: number; language: string; sequence: number }>()((db, p, { greatest }) =>
  db
    .insertInto('language_asked')
    .values({ parcel_id: p.parcelId, language: p.language, sequence: p.sequence })
    .onConflict((conflict) =>
      conflict.columns(['parcel_id', 'language']).doUpdateSet((row) => ({
        sequence: greatest(row.ref('language_asked.sequence'), row.ref('excluded.sequence')),
      })),
    ),
)
const languagesOf = statement<{ parcelId: number }>()((db, p) =>
  db.selectFrom('language_asked').select(['language', 'sequence']).where('parcel_id', '=', p.parcelId),
)

/** Records up to which sequence a parcel's entries were fetched in a language. */
export async function markLanguageAsked(session: Session, parcelId: number, language: string, sequence: number): Promise<void> {
  await session.run(languageAsked, { parcelId, language, sequence })
}

export async function loadLanguagesAsked(
  session: Session,
  parcelId: number,
): Promise<readonly { readonly language: string; readonly sequence: number }[]> {
  return await session.all(languagesOf, { parcelId })
}

const insertEnded = statement<{ session: string; untilMs: number }>()((db, p) =>
  db
    .insertInto('ended_session')
    .values({ session: p.session, until_ms: p.untilMs })
    .onConflict((conflict) => conflict.doNothing()),
)
const removeOldEnded = statement<{ nowMs: number }>()((db, p) => db.deleteFrom('ended_session').where('until_ms', '<', p.nowMs))
const endedOf = statement<{ sessions: readonly string[] }>()((db, p, { oneOfTexts }) =>
  db.selectFrom('ended_session').select('session').where('session', 'in', oneOfTexts(p.sessions)),
)

/** Stores that a session has ended, and removes the sessions that would have ended by themselves. */
export async function endSession(session: Session, { session: ended, untilMs, nowMs }: EndedSession): Promise<void> {
  await session.run(removeOldEnded, { nowMs })
  await session.run(insertEnded, { session: ended, untilMs })
}

export async function endedAmong(session: Session, sessions: readonly string[]): Promise<readonly string[]> {
  return (await session.all(endedOf, { sessions })).map((row) => row.session)
}
