import { type Hosted, hostOnThread } from '../../core/runtime/threads/thread.ts'
import type { MoverData, MoverVerbs } from '../../upkeep/moving/open-moves.ts'

/** The thread's young heap has room for a batch of rows, which may take some megabytes. */
const YOUNG_MB = 32

/** Starts the thread that copies a store when it is moved. */
export async function startMover(data: MoverData): Promise<Hosted<MoverVerbs>> {
  // Use the extension of this file: sources run as `.ts` in development and as `.js` from `dist`.
  const file = new URL(`./mover-thread${import.meta.url.slice(-3)}`, import.meta.url)
  return await hostOnThread<MoverVerbs>(file, { name: 'mover', data, youngMb: YOUNG_MB })
}
