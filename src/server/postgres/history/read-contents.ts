import { sql } from 'kysely'
import type { Session } from '../../../core/store/engine.ts'
import { type Contents, createContents } from '../../../core/store/history/contents.ts'
import { rawStatement } from '../raw-statement.ts'
import { createStandingWatch, type Standing, standingColumns } from '../standing.ts'

const readStanding = rawStatement()(() => sql<Standing>`select ${standingColumns} from counter where name = 'sequence'`)

/**
 * Makes the cache of contents for reads in a snapshot. A server that has lost commits may assign a cached id to another content. So each
 * snapshot first checks whether the server is another one or has lost commits. The check is sent just ahead of the other queries, so it costs
 * no extra wait.
 */
export function createReadContents(session: Session): (snapshot: Session) => Contents {
  const watch = createStandingWatch()
  let remembered = createContents(session)
  return (snapshot) => {
    const isBack = watch.asking()
    // Answers come in the order of the queries, so the answer to this check comes before the first sighting.
    let contents: Contents | null = null
    snapshot.all(readStanding, {}).then(
      ([found]) => {
        if (found !== undefined && isBack(found)) remembered = createContents(session)
        contents = remembered
      },
      // Ignore the failure: the other queries of the snapshot fail too, and report it.
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
