import { createHash } from 'node:crypto'
import { CompactEncrypt, compactDecrypt } from 'jose'
import type { Vault } from '../flow/delivery/ports.ts'

const ALGORITHM = { alg: 'dir', enc: 'A256GCM' } as const

/** Where the keys that encrypt come from: read when one is needed. */
export interface AtRestKeys {
  /** 32 bytes each; the first encrypts, all decrypt. Empty: there are none yet. */
  list(): readonly Uint8Array[]
  /** The key to encrypt with, made if there is none. */
  first(): Uint8Array
}

/**
 * Keys at rest as compact JWE: versioned by `kid`, so that a key can be replaced while what it encrypted is still read. The endpoint's id is
 * part of what is authenticated: a row that was given another row's key does not open.
 */
export function createVault(keys: AtRestKeys): Vault {
  return {
    async seal(text, endpointId) {
      const key = keys.first()
      return await new CompactEncrypt(Buffer.from(text, 'utf8'))
        .setProtectedHeader({ ...ALGORITHM, kid: nameOf(key), endpoint: endpointId })
        .encrypt(key)
    },
    async open(sealed, endpointId) {
      const keyOf = ({ kid }: { readonly kid?: string }): Uint8Array => {
        const key = keys.list().find((one) => nameOf(one) === kid)
        if (key === undefined) throw new Error('no key of this name')
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
  }
}

/** Tells keys apart and says nothing of them: they are random. */
function nameOf(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 11)
}
