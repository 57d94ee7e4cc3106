import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import { readRegular } from '../../../regular-file.ts'
import { systemCode } from '../../domain/errors.ts'
import { writeWhole } from './whole-file.ts'

const KEY_BYTES = 32

/**
 * Reads and makes the key that encrypts the secrets in a store if the config names no key. The key is in a file beside the store. Only the
 * owner of the file can read it.
 */
export function keyFileBeside(storePath: string) {
  const path = `${storePath}.key`

  function read(): Uint8Array | null {
    try {
      return readKeyFile(path)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null
      throw error
    }
  }

  return {
    path,
    name: basename(path),
    read,
    readOrMake(): Uint8Array {
      const known = read()
      if (known !== null) return known
      const key = randomBytes(KEY_BYTES)
      writeKeyFile(path, key)
      return key
    },
  }
}

/** Throws if the file is missing, or does not hold a key, such as an empty file that a full disk has left. */
export function readKeyFile(path: string): Buffer {
  const key = Buffer.from(readRegular(path).toString().trim(), 'base64')
  if (key.byteLength === KEY_BYTES) return key
  throw new Error(
    `${path} does not hold a key. Put a copy of the right one there, or move the file away if nothing was ever encrypted with it.`,
  )
}

/** Null: the file is missing or damaged. Throws if it cannot be read now. */
export function readKeyIfPossible(path: string): Buffer | null {
  try {
    return readKeyFile(path)
  } catch (error) {
    if (![null, 'ENOENT'].includes(systemCode(error))) throw error
    return null
  }
}

/** Nothing is encrypted with a key that a power cut or a full disk destroys, because the file is on the disk, whole, when this returns. */
export function writeKeyFile(path: string, key: Uint8Array): void {
  writeWhole(path, `${Buffer.from(key).toString('base64')}\n`)
}
