import { chmodSync, globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { BuildOptions, Plugin } from 'rolldown'

/** Files that the program reads and does not import keep their places below `src`. */
const filesToRead: Plugin = {
  name: 'files to read',
  generateBundle() {
    for (const path of globSync('src/console/portal/assets/*'))
      this.emitFile({ type: 'asset', fileName: relative('src', path), source: readFileSync(path) })
  },
}

/** A link to the program, as on the PATH of the image, can be run only if the program can. */
const executable: Plugin = {
  name: 'executable',
  writeBundle({ dir = '' }) {
    chmodSync(join(dir, 'main.js'), 0o755)
  },
}

/** What is compiled: a file for each thread and what they share, libraries included. Loading some thousand modules one by one took most of a start. */
export default {
  input: {
    main: 'src/main.ts',
    'receiver-thread': 'src/assembly/hosting/receiver-thread.ts',
    'writer-thread': 'src/assembly/hosting/writer-thread.ts',
    'mover-thread': 'src/assembly/hosting/mover-thread.ts',
    'backup-thread': 'src/upkeep/backups/backup-thread.ts',
    'comparing-thread': 'src/upkeep/backups/comparing-thread.ts',
    'checkpoint-thread': 'src/core/store/sqlite/checkpoint-thread.ts',
    'search-thread': 'src/upkeep/erasure/search-thread.ts',
  },
  platform: 'node',
  plugins: [filesToRead, executable],
  // The first two are programs of the machine's own; `pino` looks for files of its own beside itself.
  external: ['better-sqlite3', '@node-rs/argon2', 'pino'],
  // All side by side: a thread's file is found from whoever starts it.
  output: { dir: 'dist', chunkFileNames: '[name]-[hash].js', sourcemap: true, sourcemapExcludeSources: true },
} satisfies BuildOptions
