import type { EndedSession } from '../../domain/admin/token-keys.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

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
