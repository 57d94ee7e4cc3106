import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// What lies beside the sources. From here the way is the same in `src` and, compiled, in `dist`; from a room it would not be.

export const DEMO_CONFIG = fileURLToPath(new URL('../config/demo.yaml', import.meta.url))

/** Of this package, for example `0.1.0`. */
export const VERSION = readVersion(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

function readVersion(manifest: string): string {
  const read: unknown = JSON.parse(manifest)
  return typeof read === 'object' && read !== null && 'version' in read ? String(read.version) : 'unknown'
}
