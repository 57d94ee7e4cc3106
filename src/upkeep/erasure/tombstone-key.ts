import { randomBytes } from 'node:crypto'
import type { SealedTombstoneKey } from '../../console/secrets/manage-secrets.ts'
import type { Config } from '../../core/config/config.ts'
import { AppError, isStorageFailure, lacksRoom, storeUnavailable } from '../../core/domain/errors.ts'
import { TOMBSTONE_SEAL } from '../../core/domain/history/erased.ts'
import type { Vault } from '../../core/flow/ports.ts'
import type { Part, Writes } from '../../core/flow/relay-part.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { finishErasures, searchRecords } from './manage-erasures.ts'

interface TombstoneKeyPorts
  extends Part<'clock', 'now'>,
    Writes<
      | 'tombstoneKey'
      | 'keepTombstoneKey'
      | 'useTombstoneKey'
      | 'missedErasures'
      | 'searchMissed'
      | 'repeatErasures'
      | 'settleErasures'
      | 'unfinishedErasures'
      | 'searchMentions'
      | 'endErasures'
      | 'cleanStorage'
    > {
  readonly vault: Vault
  /** Returns 32 random bytes. */
  readonly makeKey: () => Uint8Array
  /** Returns the file or setting with the at-rest key, for messages. */
  readonly where: () => string
}

/** Manages the key from which tombstones get their marks. In the store, this key is always encrypted with an at-rest key. */
export type TombstoneKeyKeeper = ReturnType<typeof createTombstoneKeyKeeper>

const RETRY_AFTER_MS = 60_000

export function createTombstoneKeyKeeper({ write, vault, makeKey, where, clock }: TombstoneKeyPorts) {
  let isKnown = false

  async function use(text: string): Promise<void> {
    await write.useTombstoneKey(Buffer.from(text, 'base64'))
    isKnown = true
  }

  /** After a restore, takes over the key that made the marks of the tombstones that the restored store lacks. */
  async function adopt(): Promise<void> {
    const { sealedKey } = await write.missedErasures()
    if (sealedKey === null) throw new Error(KEYLESS)
    const text = await vault.open(sealedKey, TOMBSTONE_SEAL)
    if (text === null) throw lost(where())
    const { sealed, isUsed } = await write.tombstoneKey()
    const own = sealed === null ? null : await vault.open(sealed, TOMBSTONE_SEAL)
    const isOther = own !== null && own !== text
    if (isOther && isUsed)
      throw new Error(
        'store: the tombstones beside the store belong to another store. Move the file away, or restore the backup of that store.',
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
    /**
     * Decrypts the key of tombstones, if there is one. After a restore, repeats the erasures that came after the backup. Resolves with the
     * number of identifiers that were erased again. Throws if tombstones exist and no at-rest key decrypts their key.
     */
    async open() {
      if ((await write.missedErasures()).count > 0) {
        await adopt()
        return await repeatAll(write, clock.now())
      }
      await finishErasures(write)
      const { sealed, isUsed } = await write.tombstoneKey()
      if (sealed === null) return 0
      const text = await vault.open(sealed, TOMBSTONE_SEAL)
      if (text === null && isUsed) throw lost(where())
      // No tombstone exists, so a new key may replace a key that cannot be decrypted.
      await (text === null ? make(sealed) : use(text))
      return 0
    },
    /** Whether this process knows a key. If not, nothing was ever erased. */
    isKnown: () => isKnown,
    /** Makes a key if there is none. Throws `storage_unavailable` if the at-rest key cannot be used. */
    async ensure() {
      if (isKnown) return
      try {
        await make(null)
      } catch (cause) {
        if (cause instanceof AppError) throw cause
        // The key is well: the store could not be written, or the disk has no room for the file of the key.
        if (isStorageFailure(cause) || lacksRoom(cause)) throw storeUnavailable(cause)
        throw new AppError('storage_unavailable', `The key in ${where()}, which encrypts the key of tombstones, cannot be used now.`, {
          cause,
          retryAfterMs: RETRY_AFTER_MS,
        })
      }
    },
    async reseal(): ReturnType<SealedTombstoneKey['reseal']> {
      const { sealed } = await write.tombstoneKey()
      if (sealed === null) return 'none'
      if (vault.isCurrent(sealed)) return 'upToDate'
      const text = await vault.open(sealed, TOMBSTONE_SEAL)
      if (text === null) return 'unreadable'
      await write.keepTombstoneKey({ before: sealed, sealed: await vault.seal(text, TOMBSTONE_SEAL) })
      return 'resealed'
    },
    /** Returns the encrypted key; null: there is no key. */
    sealed: async (): Promise<string | null> => (await write.tombstoneKey()).sealed,
  }
}

const KEYLESS =
  'store: the file of tombstones beside the store lacks the line with their key, so nobody can tell what they stand for. Put a whole copy of the file in its place. ' +
  'If there is none, what was erased since the backup may come back: move the file away, and erase it again.'

function lost(where: string): Error {
  return new Error(explainLostTombstones(where))
}

/** Says why a relay does not start if no at-rest key opens the key of its tombstones. `where`: the file or setting with the at-rest key. */
export function explainLostTombstones(where: string): string {
  return `store: no at-rest key decrypts the key of tombstones, so erased parcels could come back. Restore ${where} as it was. If it is lost for good, "parcel-relay secrets give-up-tombstones" says what follows from that.`
}

/**
 * Repeats erasures. Searches all other records before it erases the parcels, so that a start after a crash repeats all of this: it stores
 * the tombstones last.
 */
async function repeatAll(write: TombstoneKeyPorts['write'], nowMs: number): Promise<number> {
  const { found } = await searchRecords((page) => write.searchMissed(page))
  const names = new Set(found)
  for (let after: string | null = ''; after !== null; ) {
    const page: Awaited<ReturnType<typeof write.repeatErasures>> = await write.repeatErasures({ after })
    for (const name of page.names) names.add(name)
    after = page.next
  }
  await finishErasures(write)
  // The file of the restored store contains the erased data until the WAL is written into the file.
  await write.cleanStorage()
  await write.settleErasures({ nowMs, identifiers: names.size })
  return names.size
}

const KEY_BYTES = 32

type Parts = Pick<Relay, 'write' | 'clock' | 'vault' | 'atRest' | 'log'>

/**
 * Opens the key of the tombstones. Call it before anything is recorded. On PostgreSQL the first start makes the key, because any replica may
 * erase a parcel at any time, and all of them must then recognize it. A relay that does not share its store makes the key at its first erasure.
 */
export async function openTombstoneKey(config: Config, { write, clock, vault, atRest, log }: Parts): Promise<TombstoneKeyKeeper> {
  const where = () => atRest.keyFile() ?? 'secrets.atRestKeys'
  const key = createTombstoneKeyKeeper({ write, vault, makeKey: () => randomBytes(KEY_BYTES), where, clock })
  const erased = await key.open()
  if (erased > 0) log.info({ identifiers: erased }, 'the store was restored: what had been erased since its backup was erased again')
  if (config.store.engine === 'postgres') await key.ensure()
  return key
}
