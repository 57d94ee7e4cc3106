import { lchownSync, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { type Config, ConfigError, loadConfig, loadStoreSettings, type StoreSettings } from '../../../core/config/config.ts'
import { readCertificates } from '../../../core/config/named-file.ts'
import type { Section } from '../../../core/config/schema.ts'
import { parseSource, valuesOf } from '../../../core/config/source.ts'
import { OPENING_MS, tryOpening } from '../../../core/runtime/opening/try-opening.ts'
import { readRegular } from '../../../regular-file.ts'
import { fail } from '../exit-codes.ts'
import type { ClientOptions } from './ask-relay.ts'

/** Loads a config file. `sections`: those of wings. If it has problems, reports them, sets the exit code to 1 and resolves with null. */
export const readConfig = (path: string, sections: readonly Section[]): Promise<Config | null> => orReport(() => openConfig(path, sections))

/** As `readConfig`, for what works on the store of a stopped relay. */
export const readStoreSettings = (path: string): Promise<StoreSettings | null> => orReport(() => open(path, loadStoreSettings))

async function orReport<Read>(read: () => Promise<Read>): Promise<Read | null> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    fail(`${error.problems.join('\n')}\n${error.message}`)
    return null
  }
}

/**
 * Loads a config file. First tests that the file and every file that it names can be opened, because opening a pipe or a dead network drive would
 * block this process forever. Messages have the absolute path, because with `npm --prefix` the relay runs in another folder than the shell.
 */
export const openConfig = (path: string, sections: readonly Section[]): Promise<Config> => open(path, (at) => loadConfig(at, sections))

async function open<Read>(given: string, load: (path: string) => Read): Promise<Read> {
  const path = resolve(given)
  await tryOpening([() => [{ what: 'the config file', path }], () => filesNamedIn(path)], { deadlineMs: OPENING_MS })
  return load(path)
}

/** How this machine reaches a relay with this config: its address, and the certificate that it shows. */
export function addressOf(config: Config): Pick<ClientOptions, 'url' | 'pinned'> {
  return { url: internalUrl(config), pinned: ownCertificate(config) }
}

function internalUrl({ listen: { internal } }: Config): string {
  const host = internal.host === '0.0.0.0' ? '127.0.0.1' : internal.host === '::' ? '::1' : internal.host
  return `${internal.tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${internal.port}`
}

/** Reads the certificate that the relay shows to this machine. It may be for another host name. Undefined: no TLS, or no readable file. */
function ownCertificate({ listen: { internal } }: Config): string | undefined {
  try {
    const chain = internal.tls === null ? '' : readCertificates('listen.internal.tls.certFile', internal.tls.certFile)
    // The first certificate of a chain is the relay's own. Do not trust the others: that would trust every certificate that they sign.
    return /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/.exec(chain)?.[0]
  } catch {
    return undefined
  }
}

/** A file that a setting names. */
interface NamedFile {
  readonly what: string
  readonly path: string
}

const SETTINGS = new Set(['file', 'certFile', 'keyFile', 'caFile'])
const STORE = /^sqlite:(\S.*)$/
/** The endings of the store's files that a start tests. */
const STORE_SUFFIXES = ['', '-wal', '.marker', '.lock', '.key', '.tombstones', '.unstored']

/**
 * Lists the files that a config names, including secrets and the store, so that a start can test whether they can be opened. The list is empty if the
 * config cannot be read. Loading the config then reports the reason.
 */
function filesNamedIn(configFile: string): readonly NamedFile[] {
  try {
    const source = parseSource(readRegular(configFile).toString())
    const read = source.readable ? valuesOf(source) : { values: null }
    return 'values' in read ? [...namedIn(read.values, [])] : []
  } catch {
    return []
  }
}

function* namedIn(value: unknown, path: readonly string[]): Generator<NamedFile> {
  if (typeof value === 'string') yield* namedBy(path, value)
  else if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) yield* namedIn(member, [...path, key])
}

function* namedBy(path: readonly string[], text: string): Generator<NamedFile> {
  const what = path.join('.')
  const [, storePath] = what === 'store' ? (STORE.exec(text) ?? []) : []
  if (storePath !== undefined) for (const suffix of STORE_SUFFIXES) yield { what, path: `${storePath}${suffix}` }
  else if (SETTINGS.has(path.at(-1) ?? '')) yield { what, path: text }
}

/**
 * Does work on the store of a stopped relay. If root does it, gives the files of the store that belong to root afterwards to the owner of the store's folder, as the relay may run as
 * that user and could not open them. After a kill the same command, run again, does so.
 */
export async function asOwnerOfStore<Done>({ store }: StoreSettings, work: () => Promise<Done>): Promise<Done> {
  try {
    return await work()
  } finally {
    if (store.engine === 'sqlite' && process.geteuid?.() === 0) handOver(store.path)
  }
}

function handOver(path: string): void {
  for (const place of new Set([path, resolved(path)])) {
    const folder = dirname(place)
    const owner = statSync(folder, { throwIfNoEntry: false })
    if (owner === undefined || owner.uid === 0) continue
    const names = readdirSync(folder).filter((name) => name === basename(place) || /^[.-]/.test(rest(name, basename(place))))
    for (const file of names.map((name) => join(folder, name))) if (lstatSync(file).uid === 0) lchownSync(file, owner.uid, owner.gid)
  }
}

/** What follows the name of the store in the name of a file beside it; empty: the file is not the store's. */
function rest(name: string, store: string): string {
  return name.startsWith(store) ? name.slice(store.length) : ''
}

/** Follows a symbolic link; a path that leads nowhere stays. */
function resolved(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
