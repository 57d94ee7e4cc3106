import { createHash } from 'node:crypto'
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'
import type { Vault } from '../flow/ports.ts'

const ALGORITHM = { alg: 'dir', enc: 'A256GCM' } as const

/** The keys that encrypt secrets in the store. Do not keep what these functions return: the keys may be replaced while the relay runs. */
export interface AtRestKeys {
  /** Returns the keys, 32 bytes each. The first one encrypts, and all may decrypt. Empty: no key exists yet. */
  list(): readonly Uint8Array[]
  /** Returns the key to encrypt with. Makes a key if none exists. */
  first(): Uint8Array
}

/**
 * Creates a vault that encrypts endpoint keys as compact JWE. The header `kid` names the encrypting key, so that old rows stay readable after
 * that key is replaced. The header `endpoint` is authenticated too, so a key that somebody copies to the row of another endpoint is refused.
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

/** Null: the secret is damaged. */
function keyNameIn(sealed: string): string | null {
  try {
    return decodeProtectedHeader(sealed).kid ?? null
  } catch {
    return null
  }
}

/** Returns the `kid` of a key: a part of its hash. Keys are random, so the hash reveals nothing about the key. */
export function nameKey(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 11)
}
