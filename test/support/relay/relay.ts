import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject } from 'vitest'
import { stringify } from 'yaml'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { fetchDocumented } from '../portal/api-document.ts'
import { createLogBook } from '../runner/log-book.ts'
import { shipped } from '../runner/shipped.ts'
import { ownGroup, tieToTest } from '../runner/tied-process.ts'

/** Node's own loader instead of the runner's, because compiled code needs no transformation. */
const load = createRequire(import.meta.url)

export const SHARED_KEY = 'a-shared-key-for-tests-only'
export const CARRIER_LOGIN = { username: 'demo', password: 'a-carrier-password' }
export const SHOP = { username: 'shop', password: 'shop-demo-password' }
export const ADMIN = { username: 'admin', password: 'admin-demo-password' }

/** Cheap hashes of the passwords above, because tests log in often. */
const HASHES = {
  shop: '$argon2id$v=19$m=19456,t=2,p=1$QSxfWZSD5ry4M1ntAH8yGQ$zdz3qX8bGwAYEUcHAOfeIYezNJJuU/fl8DdaFQEWTWg',
  admin: '$argon2id$v=19$m=19456,t=2,p=1$WQJuyVNk3+tN/Os/JT9lUw$0PFlK7kI1HWHdmIMp7zsWn8iwHbgKmUbWqOCUe7Ra88',
}

/** Config sections. They override the defaults below, key by key. */
export type Sections = Readonly<Record<string, unknown>>

/** Writes the config of a relay on loopback and free ports, with its store in `folder`. Returns the path of the config file. */
export function writeConfig(folder: string, carrierUrl: string, sections: Sections = {}): string {
  const defaults: Readonly<Record<string, Sections>> = {
    listen: { public: { host: '127.0.0.1', port: 0 }, internal: { host: '127.0.0.1', port: 0 } },
    webhook: { sharedKeys: [SHARED_KEY] },
    upstream: { baseUrl: carrierUrl, ...CARRIER_LOGIN, ratePerSecond: 200, concurrency: 8 },
    poll: { cron: '* * * * * *' },
    serve: {},
    limits: {},
    log: { level: 'info' },
  }
  const merged = Object.fromEntries(
    Object.entries(defaults).map(([name, section]) => [name, override(section, isSection(sections[name]) ? sections[name] : {})]),
  )
  const rest = Object.fromEntries(Object.entries(sections).filter(([name]) => !(name in defaults)))
  const path = join(folder, 'relay.yaml')
  writeFileSync(
    path,
    stringify({
      ...merged,
      store: `sqlite:${join(folder, 'relay.db')}`,
      apps: [
        { username: SHOP.username, passwordHash: HASHES.shop, scopes: ['status'] },
        { username: ADMIN.username, passwordHash: HASHES.admin, scopes: ['status', 'admin'] },
      ],
      ...rest,
    }),
  )
  return path
}

/** Overrides members of a section, and members of their members: a test that sets one setting of a listener keeps its free port. */
function override(section: Sections, by: Sections): Sections {
  const members = Object.entries(by).map(([name, value]) => {
    const inner = section[name]
    return [name, isSection(inner) && isSection(value) ? { ...inner, ...value } : value] as const
  })
  return { ...section, ...Object.fromEntries(members) }
}

function isSection(value: unknown): value is Sections {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type InProcess = typeof import('../runner/relay-in-process.ts')

/** Starts the compiled relay in this process. The caller must stop it. */
export async function startTestRelay(folder: string, carrierUrl: string, sections: Sections = {}) {
  const { startRelay, loadConfig, loadSections }: InProcess = load(join(inject('shippedFolder'), 'in-process', 'relay.js'))
  const book = createLogBook()
  const config = loadConfig(writeConfig(folder, carrierUrl, sections), await loadSections(), process.env)
  const relay = await startRelay(config, book.log)
  let stopping: Promise<void> | null = null
  const stop = () => {
    stopping ??= relay.stop()
    return stopping
  }
  return { ...relay, stop, lines: book.lines, databasePath: join(folder, 'relay.db') }
}

export interface RelayProcess {
  readonly publicUrl: string
  readonly internalUrl: string
  readonly process: ChildProcess
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/**
 * Starts `parcel-relay serve` as shipped, in its own process with `more` added to its environment, and waits until it is ready. `program`:
 * another main file, in whose folder the relay then runs.
 */
export async function spawnRelay(configPath: string, more: NodeJS.ProcessEnv = {}, program?: string): Promise<RelayProcess> {
  const { args, env } = shipped(program)
  const child = tieToTest(
    spawn(process.execPath, [...args, 'serve', '--config', configPath], {
      ...ownGroup,
      ...(program === undefined ? {} : { cwd: dirname(program) }),
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...env, ...more },
    }),
  )
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const ready = new Promise<{ public: string; internal: string }>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const said: unknown = JSON.parse(line)
      if (isReady(said)) resolve(said)
    })
  })
  const said = await Promise.race([
    ready,
    ended.then(({ code }) => Promise.reject(new Error(`the relay ended with ${code} before it was ready`))),
  ])
  return { publicUrl: said.public, internalUrl: said.internal, process: child, ended }
}

function isReady(said: unknown): said is { public: string; internal: string } {
  return typeof said === 'object' && said !== null && 'msg' in said && said.msg === 'relay ready'
}

/** Pushes exactly these bytes with their signature, like the carrier. `headers` override the headers of the carrier. */
export async function push(
  publicUrl: string,
  body: Uint8Array | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const bytes = Buffer.from(body)
  return await fetchDocumented(`${publicUrl}/webhooks/status`, {
    method: 'POST',
    body: bytes,
    headers: { 'content-type': 'application/json', 'x-service-hmac-sha256': signBody(bytes, SHARED_KEY), ...headers },
  })
}

export async function logIn(internalUrl: string, login: { readonly username: string; readonly password: string } = SHOP): Promise<string> {
  const response = await fetchDocumented(`${internalUrl}/auth/token`, {
    method: 'POST',
    body: JSON.stringify(login),
    headers: { 'content-type': 'application/json' },
  })
  const answer: unknown = await response.json()
  if (typeof answer !== 'object' || answer === null || !('token' in answer)) throw new Error(`no token: ${response.status}`)
  return String(answer.token)
}

/** Checks the answer against the document of the API. */
export async function ask(internalUrl: string, token: string, path: string): Promise<Response> {
  return await fetchDocumented(`${internalUrl}${path}`, { headers: { authorization: `Bearer ${token}` } })
}
