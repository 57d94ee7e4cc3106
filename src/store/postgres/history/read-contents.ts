import { sql } from 'kysely'
import type { Session } from '../../engine.ts'
import { type Contents, createContents } from '../../history/contents.ts'
import { rawStatement } from '../raw-statement.ts'
import { createStandingWatch, type Standing, standingColumns } from '../standing.ts'

const readStanding = rawStatement()(() => sql<Standing>`select ${standingColumns} from counter where name = 'sequence'`)

/**
 * What this replica remembers of the words that are stored, for those who read in one snapshot. A server that has lost commits gives the ids of words to
 * others, so each snapshot looks first whether it still is the server that they were read from. That is sent ahead of all it reads: nobody waits for it.
 */
export function createReadContents(session: Session): (snapshot: Session) => Contents {
  const watch = createStandingWatch()
  let remembered = createContents(session)
  return (snapshot) => {
    const isBack = watch.asking()
    // Answers come in order, so this one is there before the first sighting is.
    let contents: Contents | null = null
    snapshot.all(readStanding, {}).then(
      ([found]) => {
        if (found !== undefined && isBack(found)) remembered = createContents(session)
        contents = remembered
      },
      // The snapshot fails too, and reports it.
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
