import type { Session } from '../../core/store/engine.ts'
import { rowOf, statement } from '../../core/store/statement.ts'
import { COLUMNS, type Tables } from '../../core/store/tables.ts'
import { readRefusedCause, type StoredRefused } from './refused-pushes.rules.ts'

// The order is always the same, so that two processes that delete the same spells do not deadlock.
const all = statement()((db) => db.selectFrom('refused_pushes').selectAll().orderBy('process').orderBy('cause').orderBy('from_ms'))
const upsert = statement<Tables['refused_pushes']>()((db, p) =>
  db
    .insertInto('refused_pushes')
    .values(rowOf(COLUMNS.refused_pushes, p))
    .onConflict((conflict) =>
      conflict
        .columns(['process', 'cause', 'from_ms'])
        .doUpdateSet({ until_ms: p.until_ms, count: p.count, pushes: p.pushes, again: p.again }),
    ),
)
const remove = statement<{ process: string; cause: string; fromMs: number }>()((db, p) =>
  db.deleteFrom('refused_pushes').where('process', '=', p.process).where('cause', '=', p.cause).where('from_ms', '=', p.fromMs),
)

/** Lists the stored spells of refused pushes of all processes. There are about a thousand at most (`staleRefused`). */
export async function listRefused(session: Session): Promise<readonly StoredRefused[]> {
  const rows = await session.all(all, {})
  return rows.flatMap(({ process, cause: stored, from_ms: fromMs, until_ms: untilMs, count, pushes, again }) => {
    const cause = readRefusedCause(stored)
    const comeback = pushes === null || again === null ? {} : { comeback: { pushes, again } }
    return cause === null ? [] : [{ process, cause, fromMs, untilMs, count, ...comeback }]
  })
}

/** Saves a spell, and replaces its earlier state if one is stored. */
export function saveRefused(session: Session, { process, cause, fromMs, untilMs, count, comeback }: StoredRefused): void {
  const { pushes = null, again = null } = comeback ?? {}
  session.enqueueWrite(upsert, { process, cause, from_ms: fromMs, until_ms: untilMs, count, pushes, again })
}

export function removeRefused(session: Session, { process, cause, fromMs }: StoredRefused): void {
  session.enqueueWrite(remove, { process, cause, fromMs })
}
