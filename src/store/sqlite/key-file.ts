import { randomBytes } from 'node:crypto'
import { closeSync, fchmodSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { systemCode } from '../../domain/errors.ts'
import { readRegular } from '../../regular-file.ts'
import { FILE_MODE } from './permissions.ts'

const KEY_BYTES = 32

/**
 * Reads and makes the key that encrypts the secrets in a store if the config names no key. The key is in a file beside the store. Only the
 * owner of the file can read it.
 */
export function keyFileBeside(storePath: string) {
  const path = `${storePath}.key`

  function read(): Uint8Array | null {
    let text: string
    try {
      text = readRegular(path).toString()
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null
      throw error
    }
    const key = Buffer.from(text.trim(), 'base64')
    if (key.byteLength !== KEY_BYTES) throw new Error(`${path} does not hold a key: restore it, or name the key in secrets.atRestKeys`)
    return key
  }

  return {
    path,
    name: basename(path),
    read,
    readOrMake(): Uint8Array {
      const known = read()
      if (known !== null) return known
      const key = randomBytes(KEY_BYTES)
      write(path, `${key.toString('base64')}\n`)
      return key
    },
  }
}

/** Writes the key file and syncs it, so that nothing is encrypted with a key that a power cut destroys. */
function write(path: string, text: string): void {
  const file = openSync(path, 'wx', FILE_MODE)
  try {
    fchmodSync(file, FILE_MODE)
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
