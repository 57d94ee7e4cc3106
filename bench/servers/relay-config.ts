import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'

export const SHARED_KEY = 'a-shared-key-for-the-bench-only'
export const SHOP = { username: 'shop', password: 'shop-demo-password' }

export interface RelayConfig {
  /** Path of the store, which may not exist yet. */
  readonly storePath: string
  /** Sections that differ from the defaults. */
  readonly sections?: Readonly<Record<string, object | string>>
  /** URL of the database, if the store is on PostgreSQL. */
  readonly database?: string
}

/** Disables polls: parcels fall due as usual, but no carrier listens at the configured address. */
const NO_POLLER = { cron: '0 0 1 1 *' }

/** Writes the config of a relay on loopback with default settings; returns the file's path. */
export function writeRelayConfig(folder: string, { storePath, database, sections = {} }: RelayConfig): string {
  const path = join(folder, 'relay.yaml')
  const config = {
    listen: { public: { host: '127.0.0.1', port: 0 }, internal: { host: '127.0.0.1', port: 0 } },
    store: database ?? `sqlite:${storePath}`,
    secrets: database === undefined ? {} : { atRestKeys: [Buffer.alloc(32, 'at rest').toString('base64')] },
    webhook: { sharedKeys: [SHARED_KEY] },
    upstream: { baseUrl: 'http://127.0.0.1:9', username: 'bench', password: 'a-carrier-password' },
    poll: NO_POLLER,
    apps: [{ username: SHOP.username, passwordHash: HASH, scopes: ['status'] }],
    ...sections,
  }
  writeFileSync(path, stringify(config))
  return path
}

/** Hash of the shop's password. */
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$QSxfWZSD5ry4M1ntAH8yGQ$zdz3qX8bGwAYEUcHAOfeIYezNJJuU/fl8DdaFQEWTWg'

/** Who may see every page of the portal. Config sections name the app; the shop's hash serves for both. */
export const OPERATOR = { password: SHOP.password, app: { username: 'operator', passwordHash: HASH, scopes: ['admin'] } }
