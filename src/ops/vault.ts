import { createHash } from 'node:crypto'
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'
import type { Vault } from '../flow/delivery/vault.ts'

const ALGORITHM = { alg: 'dir', enc: 'A256GCM' } as const

/** The keys for encryption. Ask for them whenever you need one, because they may be replaced while the relay runs. */
export interface AtRestKeys {
  /** The keys, 32 bytes each. The first encrypts, all decrypt. Empty: none exists yet. */
  list(): readonly Uint8Array[]
  /** The key to encrypt with; makes one if none exists. */
  first(): Uint8Array
}

/**
 * Encrypts endpoint keys as compact JWE. `kid` names the encrypting key, so that the key can be replaced while old rows stay readable. The
 * endpoint's id is authenticated too, so a key copied to the row of another endpoint cannot be decrypted.
 */
export function createVault(keys: AtRestKeys): Vault {
  return {
    async seal(text, endpointId) {
      const key = keys.first()
      return await new CompactEncrypt(Buffer.from(text, 'utf8'))
        .setProtectedHeader({ ...ALGORITHM, kid: nameKey(key), endpoint: endpointId })
        .encrypt(key)
    },
    async open(sealed, endpointId) {
      const keyOf = ({ kid }: { readonly kid?: string }): Uint8Array => {
        const key = keys.list().find((one) => nameKey(one) === kid)
        if (key === undefined) throw new Error('no key has this kid')
        return key
      }
      try {
        const { plaintext, protectedHeader } = await compactDecrypt(sealed, keyOf, {
          keyManagementAlgorithms: [ALGORITHM.alg],
          contentEncryptionAlgorithms: [ALGORITHM.enc],
        })
        return protectedHeader.endpoint === endpointId ? Buffer.from(plaintext).toString('utf8') : null
      } catch {
        return null
      }
    },
    isCurrent(sealed) {
      const [first] = keys.list()
      return first !== undefined && keyNameIn(sealed) === nameKey(first)
    },
  }
}

/** The name of the key that encrypted it; null: it is damaged. */
function keyNameIn(sealed: string): string | null {
  try {
    return decodeProtectedHeader(sealed).kid ?? null
  } catch {
    return null
  }
}

/** A `kid` for a key. Keys are random, so the hash reveals nothing about them. */
export function nameKey(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 11)
}
