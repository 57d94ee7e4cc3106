import { userInfo } from 'node:os'
import type { StoreSettings } from '../../core/config/config.ts'
import type { OperatorAction } from '../../core/domain/admin/operator-action.ts'
import type { RestoreRecord } from '../../core/domain/admin/restore.ts'
import { TOMBSTONE_SEAL } from '../../core/domain/history/erased.ts'
import { createVault, nameKey } from '../../core/ops/vault.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { readGivenTombstones } from '../../core/store/sqlite/tombstone-file.ts'
import type { ServerStores } from '../stores-on-servers.ts'
import type { SealedEndpoint } from './inspect-stores.ts'
import { type ProvedKeys, type Restored, type RestoreOrder, type RestorePorts, restoreBackup } from './restore-backup.ts'

type Proof = Parameters<RestorePorts['proveKeys']>[0]

/** Replaces the store of a config by a backup, while no relay uses the store. */
export async function restoreStore(
  config: StoreSettings,
  {
    isWithoutKeys,
    ...order
  }: Pick<RestoreOrder, 'file' | 'last' | 'isConfirmed' | 'isOtherRelay' | 'tombstones' | 'forgetsErasures'> & {
    /** Whether an operator knows that the at-rest key of the backup is lost. */
    readonly isWithoutKeys: boolean
  },
  onStep: RestorePorts['onStep'],
): Promise<Restored> {
  if (config.store.engine !== 'sqlite')
    throw new Error(
      'the store is on PostgreSQL: restore it with the server’s own tools (pg_restore, or a point-in-time recovery), then run "parcel-relay restore --mark"',
    )
  return await restoreBackup(
    { ...order, store: config.store.path, nowMs: systemClock.now(), by: whoRuns() },
    { onStep, proveKeys: (proof) => proveKeys(config, proof, { isWithoutKeys, forgetsErasures: order.forgetsErasures }) },
  )
}

/**
 * Marks a database as restored, after the server's own tools have restored it. `tombstones`: the file that lists what was erased after the backup;
 * null: there is no such file, so what was erased after the backup comes back.
 */
export async function markStore(
  { store, secrets }: StoreSettings,
  { last, tombstones }: { readonly last: number; readonly tombstones: string | null },
  { markRestored }: Pick<ServerStores, 'markRestored'>,
): Promise<RestoreRecord> {
  if (store.engine === 'sqlite') throw new Error('--mark is for a store on PostgreSQL: name the file of the backup instead')
  const given = tombstones === null ? null : readGivenTombstones(tombstones)
  if (given !== null && (await opener(keysOf(secrets))(given.sealedKey, TOMBSTONE_SEAL)) === null)
    throw new Error(
      `no key in secrets.atRestKeys opens the key in ${tombstones}. Nothing was changed. List the at-rest key that the relays used when the file was made.`,
    )
  return await markRestored({ address: store.url.reveal(), last, tombstones: given, nowMs: systemClock.now(), by: whoRuns() })
}

/** The user who runs this command. */
export function whoRuns(): OperatorAction['by'] {
  return { kind: 'command', name: nameOfUser(), address: null }
}

/** Node throws for a user id that the system has no name for, as containers have them. */
function nameOfUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

async function proveKeys(
  config: StoreSettings,
  { sealed, sealedBefore, keyFile, keyFileBefore, tombstoneKeys, manifest }: Proof,
  { isWithoutKeys, forgetsErasures }: { readonly isWithoutKeys: boolean; readonly forgetsErasures: boolean },
): Promise<ProvedKeys> {
  const named = keysOf(config.secrets)
  const open = opener([...named, ...(keyFile === null ? [] : [keyFile])])
  const openBefore = opener([...named, ...(keyFileBefore === null ? [] : [keyFileBefore])])
  const current = new Map<string, string>()
  const lost: string[] = []
  for (const endpoint of sealed) {
    const keys = await Promise.all(endpoint.keys.map((key) => open(key, endpoint.id)))
    if (keys.includes(null)) lost.push(endpoint.name)
    else current.set(endpoint.name, keys[0] ?? '')
  }
  if (lost.length > 0 && !isWithoutKeys) throw new Error(explainLost(lost, manifest.keys, named.map(nameKey)))
  const tombstoneKey = await findOpened(open, tombstoneKeys)
  if (tombstoneKey === null && tombstoneKeys.length > 0 && !(isWithoutKeys && forgetsErasures)) throw new Error(TOMBSTONES_LOST)
  const before = new Map<string, string | null>()
  for (const endpoint of sealedBefore) before.set(endpoint.name, await currentKey(openBefore, endpoint))
  const others = [...current].filter(([name, key]) => isOther(key, [configuredKey(config, name), before.get(name)]))
  return { otherKeys: others.map(([name]) => name), lostKeys: lost, tombstoneKey }
}

function keysOf({ atRestKeys }: StoreSettings['secrets']): readonly Buffer[] {
  return atRestKeys.map((key) => Buffer.from(key.reveal(), 'base64'))
}

type Open = (sealed: string, endpointId: string) => Promise<string | null>

function opener(keys: readonly Uint8Array[]): Open {
  const [first] = keys
  if (first === undefined) return async () => null
  return createVault({ list: () => keys, first: () => first }).open
}

/** Returns the first of these sealed keys of tombstones that can be opened; null: none can. Throws if they are not all one key. */
async function findOpened(open: Open, sealedKeys: readonly string[]): Promise<string | null> {
  const opened = await Promise.all(sealedKeys.map((sealed) => open(sealed, TOMBSTONE_SEAL)))
  if (new Set(opened.filter((text) => text !== null)).size > 1) throw new Error(OTHER_TOMBSTONES)
  return sealedKeys.find((_, at) => opened[at] !== null) ?? null
}

async function currentKey(open: Open, { id, keys: [current] }: SealedEndpoint): Promise<string | null> {
  return current === undefined ? null : await open(current, id)
}

function configuredKey({ endpoints }: StoreSettings, name: string): string | undefined {
  return endpoints.find((one) => one.name === name)?.sharedKey?.reveal()
}

/** Whether one of these keys is known and differs from `key`. */
function isOther(key: string, others: readonly (string | null | undefined)[]): boolean {
  return others.some((other) => other !== null && other !== undefined && other !== key)
}

const OTHER_TOMBSTONES =
  'the tombstones beside or in the store belong to another store than the backup. Nothing was changed. Move that file (STORE.tombstones) and that store away first.'

const TOMBSTONES_LOST =
  'no at-rest key decrypts the key with which the relay recognizes erased parcels, so the relay would not start. Nothing was changed. List the right at-rest key in secrets.atRestKeys, or put ' +
  'the key file (NAME.key) beside the backup. If that key is lost for good: --without-keys --forget-erasures. Then what was erased since the backup comes back, and ' +
  'pushes may bring back what was erased before the backup. Erase both again.'

function explainLost(endpoints: readonly string[], needed: readonly string[], given: readonly string[]): string {
  const which = needed.length === 0 ? 'the key file that lay beside it (NAME.key)' : `a key named ${needed.join(' or ')}`
  const have = given.length === 0 ? 'the config names no key' : `the config has ${given.join(', ')}`
  return `the keys of these endpoints in the backup cannot be opened: ${endpoints.join(', ')}. They need ${which}; ${have}. Nothing was changed. List the right one in secrets.atRestKeys, or put the file beside the backup. If it is lost for good, add --without-keys, and give these endpoints new keys afterwards.`
}
