import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config, StoreSettings } from '../../core/config/config.ts'
import { createSecret } from '../../core/config/secret.ts'
import { isPostgresUrl } from '../../core/config/values.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { createFailureLog } from '../../core/flow/log-digest.ts'
import type { Log } from '../../core/flow/ports.ts'
import { createVault } from '../../core/ops/vault.ts'
import { OPENING_MS, tryOpening } from '../../core/runtime/opening/try-opening.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { behindLinks } from '../../core/store/sqlite/lock.ts'
import { STORE_SUFFIXES } from '../../core/store/sqlite/whole-file.ts'
import type { ServerStores } from '../stores-on-servers.ts'
import { sqliteMoves } from './sqlite-moves.ts'
import type { MoveMark, StoreHold, StoreMoves } from './store-moves.rows.ts'

/** The address of a store: a path for SQLite, a URL for PostgreSQL. */
export interface StoreAddress {
  readonly engine: Config['store']['engine']
  readonly address: string
}

export function addressOf({ store }: Pick<Config, 'store'>): StoreAddress {
  return store.engine === 'sqlite' ? { engine: store.engine, address: store.path } : { engine: store.engine, address: store.url.reveal() }
}

function settingOf({ engine, address }: StoreAddress): Config['store'] {
  return engine === 'sqlite' ? { engine, path: address } : { engine, url: createSecret(address) }
}

/** Parses an address in the form of the setting `store`; null: the text has another form. */
export function readAddress(text: string): StoreAddress | null {
  if (isPostgresUrl(text)) return { engine: 'postgres', address: text }
  return /^sqlite:\S.*$/.test(text) ? { engine: 'sqlite', address: resolve(text.slice('sqlite:'.length)) } : null
}

/** Formats an address for `readAddress`. A path becomes absolute, so that it does not depend on the working directory. */
function writeAddress({ engine, address }: StoreAddress): string {
  return engine === 'sqlite' ? `sqlite:${resolve(address)}` : address
}

export function movesOf({ engine }: Pick<StoreAddress, 'engine'>, { moves }: Pick<ServerStores, 'moves'>): StoreMoves {
  return engine === 'sqlite' ? sqliteMoves : moves
}

/** The most moves to follow from the store in the config to the one in use. */
const MOVES_MAX = 100

/**
 * Returns the config with the store that is in use. If the store in the config was moved, the result names the new store. So an operator need
 * not change the config before a restart. Rejects if the new store cannot be found or opened.
 */
export async function findStoreInUse(config: Config, log: Pick<Log, 'warn'>, server: ServerStores): Promise<Config> {
  let inUse = config
  for (let moves = 0; moves < MOVES_MAX; moves++) {
    const from = addressOf(inUse)
    const mark = await movesOf(from, server).readMark(from.address)
    if (mark?.state !== 'moved') return inUse
    const to = await decodeMoveAddress(config, mark.address)
    const store = movesOf(from, server).nameOf(from.address)
    if (to === null)
      throw new Error(`store: ${store} was moved to ${mark.peer}. No key in secrets.atRestKeys opens its address: name it in \`store\`.`)
    await tryStoreFile(to)
    // If the move was killed right after its switch, it has not released the new store.
    await movesOf(to, server).release(to.address, mark.moveId)
    log.warn(
      { store, movedTo: mark.peer, movedAt: new Date(mark.atMs).toISOString() },
      'the store was moved, and the relay uses the new one: name it in `store`. Until then the relay looks it up at every start',
    )
    inUse = { ...inUse, store: settingOf(to) }
  }
  throw new Error('store: it was moved too often. Name the last store in `store`.')
}

/**
 * Rejects if the file of a store does not open in time, with a message that names the file. Does nothing for a store on a server, because
 * connections have a time-out.
 */
export async function tryStoreFile({ engine, address }: StoreAddress, signal?: AbortSignal): Promise<void> {
  if (engine !== 'sqlite') return
  const files = STORE_SUFFIXES.map((suffix) => ({ what: 'store', path: `${behindLinks(address)}${suffix}` }))
  await tryOpening([() => files], { deadlineMs: OPENING_MS, ...(signal === undefined ? {} : { signal }) })
}

/** What the encryption is for. The text can be decrypted only for the same purpose. */
const PURPOSE = 'moved-store'

function vaultOf(config: Pick<Config, 'secrets'>) {
  const [first, ...others] = config.secrets.atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
  if (first === undefined) return null
  return createVault({ list: () => [first, ...others], first: () => first })
}

/**
 * Encodes the address of the new store, for the old store to keep. The address of a database is encrypted, because it contains a password.
 * Null: the config names no key to encrypt with.
 */
export async function encodeMoveAddress(config: Pick<Config, 'secrets'>, to: StoreAddress): Promise<string | null> {
  if (to.engine === 'sqlite') return writeAddress(to)
  return (await vaultOf(config)?.seal(writeAddress(to), PURPOSE)) ?? null
}

/** Decodes an address that `encodeMoveAddress` has encoded; null: no key in the config can decrypt it. */
async function decodeMoveAddress(config: Pick<Config, 'secrets'>, address: string): Promise<StoreAddress | null> {
  const text = address.startsWith('sqlite:') ? address : await vaultOf(config)?.open(address, PURPOSE)
  return typeof text === 'string' ? readAddress(text) : null
}

const REST_MS = 250

interface UntilReachable {
  readonly goesOn: () => boolean
  readonly log: Pick<Log, 'error' | 'warn' | 'info' | 'debug'>
  readonly server: Pick<ServerStores, 'isAway'>
}

/**
 * Repeats work that needs the database while its server cannot be reached. A restart of the server during a move must not end the relay.
 * Rejects with any other failure.
 */
export async function untilReachable<T>(work: () => Promise<T>, { goesOn, log, server }: UntilReachable): Promise<T> {
  const failures = createFailureLog({ log, clock: systemClock })
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!server.isAway(error) || !goesOn()) throw error
      failures.add('error', { err: error }, 'the database cannot be reached while its store is moved; the relay tries again')
      await pause(REST_MS)
    }
  }
}

/** The result of undoing a move. `store`: the name of the store to which the config's store was moved. */
type UndoneMove =
  | { readonly kind: 'not_moved' }
  | { readonly kind: 'in_use'; readonly store: string; readonly usedBy: string }
  /** `unverified`: why nobody knows whether a relay uses that store; null: no relay uses it. */
  | { readonly kind: 'undone'; readonly atMs: number; readonly store: string; readonly unverified: string | null }

/** The store that has replaced a moved store. `hold` null: the store could not be reached. */
type Successor = { readonly name: string } & ({ readonly hold: StoreHold } | { readonly hold: null; readonly unverified: string })

/**
 * Goes back to the store that the config names, with its data at the time of the move. Changes nothing if a relay uses the new store, because
 * the pushes that were acknowledged there would be lost. If the new store is gone or out of reach, undoes the move all the same, because then
 * the old store is needed.
 */
export async function undoMove(config: StoreSettings, server: ServerStores): Promise<UndoneMove> {
  const { engine, address } = addressOf(config)
  const mark = await movesOf({ engine }, server).readMark(address)
  if (mark?.state !== 'moved') return { kind: 'not_moved' }
  const successor = await holdSuccessor(config, mark, server)
  const store = successor.name
  try {
    const usedBy = successor.hold?.usedBy ?? null
    if (usedBy !== null) return { kind: 'in_use', store, usedBy }
    const undone = await movesOf({ engine }, server).undo(address, Date.now())
    if (undone === null) return { kind: 'not_moved' }
    return { kind: 'undone', atMs: undone.atMs, store, unverified: successor.hold === null ? successor.unverified : null }
  } finally {
    successor.hold?.release()
  }
}

/** Finds the store at the end of a chain of moves. If the store is a file, locks it, so that no relay starts on it. */
async function holdSuccessor(config: StoreSettings, moved: MoveMark, server: ServerStores): Promise<Successor> {
  let name = moved.peer
  try {
    let mark = moved
    for (let moves = 0; moves < MOVES_MAX; moves++) {
      const to = await decodeMoveAddress(config, mark.address)
      if (to === null) return { name, hold: null, unverified: 'no key in secrets.atRestKeys opens its address' }
      const next = await movesOf(to, server).readMark(to.address)
      if (next?.state !== 'moved') return { name, hold: await movesOf(to, server).holdUnused(to.address) }
      mark = next
      name = next.peer
    }
    return { name, hold: null, unverified: 'it was moved too often' }
  } catch (error) {
    const why = describeFailure(error)
    return { name, hold: null, unverified: why.replace(/^store: /, '').replace(/\.$/, '') }
  }
}
