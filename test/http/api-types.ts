import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The last line of `docs/openapi.d.ts`: which document its types were made of. */
export function stampOfTypes(): string {
  return `// Made of docs/openapi.json with the SHA-256 ${createHash('sha256').update(readFileSync('docs/openapi.json')).digest('hex')}`
}
