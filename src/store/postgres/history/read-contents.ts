import { sql } from 'kysely'
import type { Session } from '../../engine.ts'
import { type Contents, createContents } from '../../history/contents.ts'
import { rawStatement } from '../raw-statement.ts'
import { createStandingWatch, type Standing, standingColumns } from '../standing.ts'

const readStanding = rawStatement()(() => sql<Standing>`select ${standingColumns} from counter where name = 'sequence'`)

/**
 * The cache of contents for reads in a snapshot. A server that has lost commits may give an id again to another content, so each snapshot
 * first checks that the server is still the same. That query is sent ahead of the others, so nobody waits for it.
 */
export function createReadContents(session: Session): (snapshot: Session) => Contents {
  const watch = createStandingWatch()
  let remembered = createContents(session)
  return (snapshot) => {
    const isBack = watch.asking()
    // Answers come in order, so the answer to this check comes before the first sighting.
    let contents: Contents | null = null
    snapshot.all(readStanding, {}).then(
      ([found]) => {
        if (found !== undefined && isBack(found)) remembered = createContents(session)
        contents = remembered
      },
      // The snapshot fails too, and reports the failure.
      () => undefined,
    )
    const nothing = createContents(session)
    return {
      ...nothing,
      recallContent: (id) => contents?.recallContent(id),
      read: (through, ids) => (contents ?? nothing).read(through, ids),
    }
  }
}
