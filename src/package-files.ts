import { promises, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// Keep this file at the top of `src`. It is then also at the top of the compiled `dist`, so the same relative paths work from both folders.

const PORTAL_ASSETS = ['portal.css', 'portal.js', 'icon.svg']

/** Reads a file that the portal's pages load, such as the style sheet. Null: there is no file of this name. */
export function readPortalAsset(name: string): Buffer | null {
  return PORTAL_ASSETS.includes(name) ? readFileSync(new URL(`./console/portal/assets/${name}`, import.meta.url)) : null
}

export const DEMO_CONFIG = fileURLToPath(new URL('../config/demo.yaml', import.meta.url))

/** Reads the OpenAPI document of the API, which `npm run docs` writes. */
export const readApiDocument = (): Promise<Buffer> => readDocs('openapi.json')

/** Reads a file of `docs/`. The name must not come from a request. */
export const readDocs = (name: string): Promise<Buffer> => promises.readFile(new URL(`../docs/${name}`, import.meta.url))

/** The version of this package, for example `0.1.0`. */
export const VERSION = readVersion(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

function readVersion(manifest: string): string {
  const read: unknown = JSON.parse(manifest)
  return typeof read === 'object' && read !== null && 'version' in read ? String(read.version) : 'unknown'
}
