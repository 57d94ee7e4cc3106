import { sealedTexts } from '../../core/domain/delivery/endpoint-keys.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import type { Vault } from '../../core/flow/delivery/vault.ts'
import type { Reads, Writes } from '../../core/flow/relay.ts'

export interface ResealEndpointsPorts extends Reads<'listEndpoints'>, Writes<'resealEndpoint'> {
  readonly vault: Vault
}

export interface Resealed {
  /** How many keys had been sealed with another at-rest key, and are now sealed with the first one. */
  readonly resealed: number
  /** How many keys had already been sealed with the first at-rest key. */
  readonly upToDate: number
  /** Descriptions of the sealed keys that no at-rest key opens. */
  readonly unreadable: readonly string[]
}

export interface CountSealedPorts extends Reads<'listEndpoints'> {
  readonly vault: Pick<Vault, 'isCurrent'>
  /** Reads the sealed key of the tombstones; null: there is none. */
  readonly tombstoneKey: () => Promise<string | null>
}

/** Counts the sealed keys of endpoints and of the tombstones. `upToDate`: how many are sealed with the first at-rest key. */
export async function countSealed({ vault, reads, tombstoneKey }: CountSealedPorts): Promise<{
  readonly upToDate: number
  readonly outdated: number
}> {
  const sealed = [...(await reads.listEndpoints()).flatMap(({ keys }) => (keys === null ? [] : sealedTexts(keys))), await tombstoneKey()]
  const texts = sealed.filter((text) => text !== null)
  const upToDate = texts.filter((text) => vault.isCurrent(text)).length
  return { upToDate, outdated: texts.length - upToDate }
}

/**
 * Seals the keys of all endpoints with the first at-rest key. The keys themselves do not change, so this may be interrupted and repeated at
 * any time.
 */
export async function resealEndpoints({ vault, reads, write }: ResealEndpointsPorts): Promise<Resealed> {
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
