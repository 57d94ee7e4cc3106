import { Worker } from 'node:worker_threads'
import type { ErasedWords } from '../../core/store/engine.ts'

/** The thread's `workerData`. */
export interface SearchData {
  /** A file descriptor of the database. */
  readonly file: number
  readonly identifiers: readonly string[]
  readonly texts: readonly string[]
}

export interface SearchResult {
  readonly leftovers: number
}

export interface FileSearch {
  /** Counts the occurrences of erased words in unused parts of the file. Rejects if the file cannot be read. */
  search(words: ErasedWords): Promise<number>
  /** Ends the search that is under way, which then rejects. */
  close(): Promise<void>
}

/** Searches the file of a store on a thread of low priority, which lives as long as the search. `open`: see `keepOpen`. */
export function createFileSearch(open: () => number | null): FileSearch {
  let thread: Worker | null = null
  return {
    search: ({ identifiers, texts }) =>
      new Promise((resolve, reject) => {
        const file = open()
        if (file === null) throw new Error('it could not be opened')
        // Uses this file's own extension: `.ts` in development, `.js` when compiled.
        const worker = new Worker(new URL(`./search-thread${import.meta.url.slice(-3)}`, import.meta.url), {
          name: 'search',
          workerData: { file, identifiers: [...identifiers], texts: [...texts] } satisfies SearchData,
          resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 128 },
        })
        thread = worker
        worker.on('message', ({ leftovers }: SearchResult) => resolve(leftovers))
        worker.on('error', reject)
        worker.on('exit', () => {
          thread = null
          reject(new Error('the search was ended'))
        })
        worker.unref()
      }),
    close: async () => void (await thread?.terminate()),
  }
}
