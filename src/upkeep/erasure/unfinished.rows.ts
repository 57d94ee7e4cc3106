import type { Session } from '../../core/store/engine.ts'
import { statement } from '../../core/store/statement.ts'

const add = statement<{ identifier: string }>()((db, p) =>
  db
    .insertInto('erasure')
    .values({ identifier: p.identifier })
    .onConflict((conflict) => conflict.column('identifier').doNothing()),
)
const all = statement()((db) => db.selectFrom('erasure').select('identifier').orderBy('identifier'))
const remove = statement<{ identifiers: readonly string[] }>()((db, p, { oneOfTexts }) =>
  db.deleteFrom('erasure').where('identifier', 'in', oneOfTexts(p.identifiers)),
)

/** Notes identifiers whose erasure has begun. Adds them in one order, so that two transactions cannot wait for each other. */
export function addUnfinished(session: Session, identifiers: readonly string[]): void {
  for (const identifier of identifiers.toSorted()) session.enqueueWrite(add, { identifier })
}

export async function listUnfinished(session: Session): Promise<readonly string[]> {
  return (await session.all(all, {})).map(({ identifier }) => identifier)
}

export function removeUnfinished(session: Session, identifiers: readonly string[]): void {
  if (identifiers.length > 0) session.enqueueWrite(remove, { identifiers })
}
