import { AppError } from '../../domain/errors.ts'
import type { ErasureWrites } from './erasure-ports.ts'

/** Encrypts a text for a name with the first at-rest key. */
interface Sealing {
  seal(text: string, name: string): Promise<string>
  /** Null: it was sealed for another name, or its at-rest key is lost. */
  open(sealed: string, name: string): Promise<string | null>
  /** Whether the first at-rest key has sealed it. */
  isCurrent(sealed: string): boolean
}

export interface TombstoneKeyPorts {
  readonly write: Pick<ErasureWrites, 'tombstoneKey' | 'keepTombstoneKey' | 'useTombstoneKey'>
  readonly vault: Sealing
  /** 32 random bytes. */
  readonly makeKey: () => Uint8Array
  /** Where the at-rest key is, for messages. */
  readonly where: () => string
}

/** What became of the sealed key. `upToDate`: the first at-rest key had sealed it. `none`: there is no key. */
export type KeyResealed = 'none' | 'resealed' | 'upToDate' | 'unreadable'

/** Keeps the key of tombstones. It is stored only as the at-rest keys seal it. */
export interface TombstoneKeyKeeper {
  /** Opens the key, if there is one. Throws if no at-rest key opens it although something was erased. */
  open(): Promise<void>
  /** Whether this process knows a key, without which nothing can have been erased. */
  isKnown(): boolean
  /** Makes the key if there is none. Throws `storage_unavailable` if the at-rest key cannot be used. */
  ensure(): Promise<void>
  /** Seals the key with the first at-rest key. */
  reseal(): Promise<KeyResealed>
  /** The key as it is sealed; null: there is none. */
  sealed(): Promise<string | null>
}

/** The vault binds a sealed text to a name, as the key of an endpoint to the endpoint. */
export const TOMBSTONE_SEAL = 'tombstones'

const RETRY_AFTER_MS = 60_000

export function createTombstoneKeyKeeper({ write, vault, makeKey, where }: TombstoneKeyPorts): TombstoneKeyKeeper {
  let isKnown = false

  async function use(text: string): Promise<void> {
    await write.useTombstoneKey(Buffer.from(text, 'base64'))
    isKnown = true
  }

  async function make(before: string | null): Promise<void> {
    const sealed = await vault.seal(Buffer.from(makeKey()).toString('base64'), TOMBSTONE_SEAL)
    const kept = await write.keepTombstoneKey({ before, sealed })
    const text = await vault.open(kept, TOMBSTONE_SEAL)
    if (text === null) throw lost(where())
    await use(text)
  }

  return {
    async open() {
      const { sealed, isUsed } = await write.tombstoneKey()
      if (sealed === null) return
      const text = await vault.open(sealed, TOMBSTONE_SEAL)
      if (text !== null) return await use(text)
      if (isUsed) throw lost(where())
      // Nothing depends on the lost key, so another may take its place.
      await make(sealed)
    },
    isKnown: () => isKnown,
    async ensure() {
      if (isKnown) return
      try {
        await make(null)
      } catch (cause) {
        if (cause instanceof AppError) throw cause
        throw new AppError('storage_unavailable', `The key in ${where()}, which encrypts the key of tombstones, cannot be used now.`, {
          cause,
          retryAfterMs: RETRY_AFTER_MS,
        })
      }
    },
    async reseal() {
      const { sealed } = await write.tombstoneKey()
      if (sealed === null) return 'none'
      if (vault.isCurrent(sealed)) return 'upToDate'
      const text = await vault.open(sealed, TOMBSTONE_SEAL)
      if (text === null) return 'unreadable'
      await write.keepTombstoneKey({ before: sealed, sealed: await vault.seal(text, TOMBSTONE_SEAL) })
      return 'resealed'
    },
    sealed: async () => (await write.tombstoneKey()).sealed,
  }
}

function lost(where: string): Error {
  return new Error(
    `store: no at-rest key opens the key by which erased parcels are known, so pushes could bring them back. Restore ${where} as it was.`,
  )
}
