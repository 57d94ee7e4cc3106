import { FIRST_MENTION, type MentionPlace } from '../../../domain/admin/erasure.ts'
import { AppError } from '../../../domain/errors.ts'
import type { ErasureWrites } from './erasure-ports.ts'

/** Encrypts a text for a name with the first at-rest key. */
interface Sealing {
  seal(text: string, name: string): Promise<string>
  /** Decrypts a text; null: it was sealed for another name, or its at-rest key is lost. */
  open(sealed: string, name: string): Promise<string | null>
  /** Whether the first at-rest key has sealed the text. */
  isCurrent(sealed: string): boolean
}

export interface TombstoneKeyPorts {
  readonly write: Pick<
    ErasureWrites,
    | 'tombstoneKey'
    | 'keepTombstoneKey'
    | 'useTombstoneKey'
    | 'missedErasures'
    | 'repeatErasures'
    | 'settleErasures'
    | 'searchMentions'
    | 'cleanStorage'
  >
  readonly vault: Sealing
  /** 32 random bytes. */
  readonly makeKey: () => Uint8Array
  /** Says in messages where the at-rest key is. */
  readonly where: () => string
}

/** The result of sealing the key again. `upToDate`: the first at-rest key had sealed it already. `none`: there is no key. */
export type KeyResealed = 'none' | 'resealed' | 'upToDate' | 'unreadable'

/** Keeps the key of tombstones. The store holds it only sealed by an at-rest key. */
export interface TombstoneKeyKeeper {
  /**
   * Opens the key, if there is one, and repeats the erasures that a restored backup does not know. Resolves with how many identifiers were
   * erased again. Throws if no at-rest key opens it although something was erased.
   */
  open(): Promise<number>
  /** Whether this process knows a key. Without one, nothing can have been erased. */
  isKnown(): boolean
  /** Makes the key if there is none. Throws `storage_unavailable` if the at-rest key cannot be used. */
  ensure(): Promise<void>
  /** Seals the key with the first at-rest key. */
  reseal(): Promise<KeyResealed>
  /** The sealed key; null: there is none. */
  sealed(): Promise<string | null>
}

/** A text is sealed for a name, and opens only for that name. The key of the tombstones is sealed for this one. */
export const TOMBSTONE_SEAL = 'tombstones'

const RETRY_AFTER_MS = 60_000

export function createTombstoneKeyKeeper({ write, vault, makeKey, where }: TombstoneKeyPorts): TombstoneKeyKeeper {
  let isKnown = false

  async function use(text: string): Promise<void> {
    await write.useTombstoneKey(Buffer.from(text, 'base64'))
    isKnown = true
  }

  /** Takes over the key of the tombstones that the store lacks, because their marks were made with it. */
  async function adopt(): Promise<void> {
    const { sealedKey } = await write.missedErasures()
    const text = sealedKey === null ? null : await vault.open(sealedKey, TOMBSTONE_SEAL)
    if (sealedKey === null || text === null) throw lost(where())
    const { sealed, isUsed } = await write.tombstoneKey()
    const isOther = sealed !== null && (await vault.open(sealed, TOMBSTONE_SEAL)) !== text
    if (isOther && isUsed)
      throw new Error(
        'store: the tombstones beside the store belong to another store. Take the file away, or restore the backup of that store.',
      )
    await write.keepTombstoneKey({ before: sealed, sealed: sealedKey })
    await use(text)
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
      if ((await write.missedErasures()).count > 0) {
        await adopt()
        return await repeatAll(write)
      }
      const { sealed, isUsed } = await write.tombstoneKey()
      if (sealed === null) return 0
      const text = await vault.open(sealed, TOMBSTONE_SEAL)
      if (text === null && isUsed) throw lost(where())
      // If nothing depends on a lost key, make another.
      await (text === null ? make(sealed) : use(text))
      return 0
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
  return new Error(`store: no at-rest key opens the key of erased parcels, so pushes could bring them back. Restore ${where} as it was.`)
}

/** One transaction searches this many records. */
const SEARCHED = 200

/**
 * Repeats erasures. Other records that name the parcels are searched first, because nobody knows the identifiers once the parcels are gone;
 * the tombstones are stored last, so that a start after a crash repeats everything.
 */
async function repeatAll({ repeatErasures, settleErasures, searchMentions, cleanStorage }: TombstoneKeyPorts['write']): Promise<number> {
  async function onEachPage(dryRun: boolean): Promise<readonly string[]> {
    const names: string[] = []
    for (let after: string | null = ''; after !== null; ) {
      const page: { readonly next: string | null; readonly names: readonly string[] } = await repeatErasures({ after, dryRun })
      names.push(...page.names)
      after = page.next
    }
    return names
  }
  const identifiers = await onEachPage(true)
  for (let place: MentionPlace | null = identifiers.length === 0 ? null : FIRST_MENTION; place !== null; )
    place = (await searchMentions({ identifiers, place, limit: SEARCHED, dryRun: false })).next
  await onEachPage(false)
  // The file of the restored store still holds what was erased, until the pages in the WAL overwrite it.
  await cleanStorage()
  await settleErasures()
  return identifiers.length
}
