import type { ActionName, Actor, OperatorAction } from '../../core/domain/admin/operator-action.ts'
import type { Replica } from '../../core/domain/admin/replica.ts'
import { parseTokenRotation } from '../../core/domain/admin/token-keys.ts'
import { sealedTexts } from '../../core/domain/delivery/endpoint-keys.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { AppError } from '../../core/domain/errors.ts'
import { TOMBSTONE_SEAL } from '../../core/domain/history/erased.ts'
import type { TokenKeyring } from '../../core/flow/admin/tokens/authenticate.ts'
import type { Vault } from '../../core/flow/ports.ts'
import type { Reads, Relay, Writes } from '../../core/flow/relay-part.ts'

export interface ResealReport {
  /** The name of the key that encrypts: the first of `secrets.atRestKeys`, or the key in the key file. */
  readonly key: string
  /** How many secrets had been encrypted with another key. */
  readonly resealed: number
  /** How many secrets had already been encrypted with this key. */
  readonly upToDate: number
  /** The names of the secrets that no key decrypts. */
  readonly unreadable: readonly string[]
}

/** How many secrets in the store are encrypted with the first at-rest key (`upToDate`), and how many with another key (`outdated`). */
export interface SealedCounts {
  readonly upToDate: number
  readonly outdated: number
}

/** The key of the tombstones, which a wing keeps. */
export interface SealedTombstoneKey {
  /** Returns the encrypted key; null: there is no key. */
  sealed(): Promise<string | null>
  /** Encrypts the key again. `upToDate`: it was already encrypted with the first at-rest key. */
  reseal(): Promise<'none' | 'resealed' | 'upToDate' | 'unreadable'>
}

interface ManageSecretsPorts
  extends Pick<Relay, 'clock'>,
    Reads<'listEndpoints'>,
    Writes<'resealEndpoint' | 'rotateTokenKeys' | 'recordAction'> {
  readonly vault: Vault
  readonly tombstoneKey: SealedTombstoneKey
  /** Returns the name of the first at-rest key. Throws if this key cannot be read or made. */
  readonly firstKey: () => string
  readonly replicas: { list(): Promise<readonly Pick<Replica, 'name' | 'atRestKeys'>[]> }
  readonly keyring: Pick<TokenKeyring, 'replace'>
}

/** Lets operators replace the relay's own keys (CONTRACT, `/relay/secrets`). */
export type ManageSecrets = ReturnType<typeof createManageSecrets>

/** @param tokenLifetimeMs the longest lifetime of a token */
export function createManageSecrets(ports: ManageSecretsPorts, { tokenLifetimeMs }: { readonly tokenLifetimeMs: number }) {
  const { write, clock, tombstoneKey } = ports
  const orderOf = (by: Actor, action: ActionName, detail: object): OperatorAction => ({
    by,
    action,
    atMs: clock.now(),
    target: null,
    detail: { ...detail },
  })

  /** Throws if another replica lacks the key, because that replica could not decrypt the secrets. */
  async function refuseUnlessShared(key: string): Promise<void> {
    const without = (await ports.replicas.list()).filter(({ atRestKeys }) => atRestKeys.length > 0 && !atRestKeys.includes(key))
    if (without.length === 0) return
    const names = without.map(({ name }) => name).join(', ')
    throw new AppError(
      'not_resealable',
      `These replicas do not have the first at-rest key yet: ${names}. Give it to them, and reload them.`,
    )
  }

  return {
    count: (): Promise<SealedCounts> => countSealed(ports),
    /** Encrypts all secrets in the store with the first at-rest key. Throws `not_resealable` as long as another replica lacks this key. */
    async reseal(by: Actor): Promise<ResealReport> {
      const key = ports.firstKey()
      await refuseUnlessShared(key)
      const endpoints = await resealEndpoints(ports)
      const tombstones = await tombstoneKey.reseal()
      const report = {
        key,
        resealed: endpoints.resealed + (tombstones === 'resealed' ? 1 : 0),
        upToDate: endpoints.upToDate + (tombstones === 'upToDate' ? 1 : 0),
        unreadable: [...endpoints.unreadable, ...(tombstones === 'unreadable' ? ['the key of erased parcels'] : [])],
      }
      await write.recordAction(orderOf(by, 'secrets.resealed', report))
      return report
    },
    /**
     * Replaces the key that signs tokens. Earlier tokens stay valid until they expire; with `{ "at": "now" }` they become invalid at once.
     * `validUntilMs`: when the last earlier token expires, epoch milliseconds; null: all earlier tokens are invalid. Throws `bad_request`.
     */
    async rotateTokens(body: unknown, by: Actor): Promise<{ readonly validUntilMs: number | null }> {
      const { isAtOnce } = parseTokenRotation(body)
      const keepMs = isAtOnce ? 0 : tokenLifetimeMs
      const action = orderOf(by, 'secrets.token_key_replaced', { at: isAtOnce ? 'now' : 'as tokens expire' })
      const keys = await write.rotateTokenKeys({ nowMs: action.atMs, keepMs, action })
      ports.keyring.replace(keys)
      return { validUntilMs: keys.previous[0]?.untilMs ?? null }
    },
  }
}

/** The most endpoints that a message names. */
const NAMED_MAX = 10

/** Throws if a key of an endpoint or of the tombstones can be decrypted with the current at-rest keys (`before`), but not with those of a new config. */
export async function refuseLosingKeys(
  { reads, tombstoneKey }: Reads<'listEndpoints'> & { readonly tombstoneKey: Pick<SealedTombstoneKey, 'sealed'> },
  { before, after }: { readonly before: Vault; readonly after: Vault },
): Promise<void> {
  const ofTombstones = await tombstoneKey.sealed()
  const opensTombstones = async (vault: Vault) => ofTombstones === null || (await vault.open(ofTombstones, TOMBSTONE_SEAL)) !== null
  if ((await opensTombstones(before)) && !(await opensTombstones(after)))
    throw new Error(
      'secrets.atRestKeys: no key of the new config decrypts the key with which the relay recognizes erased parcels. Keep the key that encrypts it until "parcel-relay secrets reseal" has run',
    )
  const lost: string[] = []
  for (const { endpoint, keys } of await reads.listEndpoints()) {
    for (const sealed of keys === null ? [] : sealedTexts(keys)) {
      const isLost = (await after.open(sealed, endpoint.id)) === null && (await before.open(sealed, endpoint.id)) !== null
      if (isLost && !lost.includes(endpoint.name)) lost.push(endpoint.name)
    }
  }
  if (lost.length === 0) return
  const named = `${lost.slice(0, NAMED_MAX).join(', ')}${lost.length > NAMED_MAX ? ` and ${lost.length - NAMED_MAX} more` : ''}`
  throw new Error(
    `secrets.atRestKeys: no key of the new config decrypts the keys of these endpoints: ${named}. Keep the key that encrypts them until "parcel-relay secrets reseal" has run`,
  )
}

/** Counts the sealed keys of endpoints and of the tombstones. `upToDate`: how many are sealed with the first at-rest key. */
export async function countSealed({
  vault,
  reads,
  tombstoneKey,
}: Reads<'listEndpoints'> & Pick<ManageSecretsPorts, 'vault' | 'tombstoneKey'>): Promise<SealedCounts> {
  const sealed = [
    ...(await reads.listEndpoints()).flatMap(({ keys }) => (keys === null ? [] : sealedTexts(keys))),
    await tombstoneKey.sealed(),
  ]
  const texts = sealed.filter((text) => text !== null)
  const upToDate = texts.filter((text) => vault.isCurrent(text)).length
  return { upToDate, outdated: texts.length - upToDate }
}

/**
 * Seals the keys of all endpoints with the first at-rest key. The keys themselves do not change, so this may be interrupted and repeated at
 * any time.
 */
async function resealEndpoints({ vault, reads, write }: ManageSecretsPorts): Promise<Omit<ResealReport, 'key'>> {
  let [resealed, upToDate] = [0, 0]
  const unreadable: string[] = []

  async function resealOne({ endpoint, keys }: EndpointState): Promise<void> {
    if (keys === null) return
    const replacements = new Map<string, string>()
    for (const sealed of sealedTexts(keys)) {
      if (vault.isCurrent(sealed)) {
        upToDate += 1
        continue
      }
      const key = await vault.open(sealed, endpoint.id)
      if (key === null) unreadable.push(`the key of endpoint ${endpoint.name}`)
      else replacements.set(sealed, await vault.seal(key, endpoint.id))
    }
    if (replacements.size > 0 && (await write.resealEndpoint({ id: endpoint.id, replacements }))) resealed += replacements.size
  }

  for (const state of await reads.listEndpoints()) await resealOne(state)
  return { resealed, upToDate, unreadable }
}
