import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Returns the last line of `docs/openapi.d.ts`. It has the hash of the document from which the types were made. */
export function stampOfTypes(): string {
  return `// Made of docs/openapi.json with the SHA-256 ${createHash('sha256').update(readFileSync('docs/openapi.json')).digest('hex')}`
}
