import { promises, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// This file is at the top of `src`, and of the compiled `dist`. So one relative path leads to these files from both.

const PORTAL_ASSETS = ['portal.css', 'portal.js', 'icon.svg']

/** A file to which the portal's pages refer; null: there is none of that name. */
export function readPortalAsset(name: string): Buffer | null {
  return PORTAL_ASSETS.includes(name) ? readFileSync(new URL(`./http/portal/assets/${name}`, import.meta.url)) : null
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
