import { readFileSync } from 'node:fs'
import { errorCode } from './secret-setting.ts'

/** The content of a file that a setting names, read when the relay starts. Throws an error that says which setting to mend. */
export function readNamedFile(setting: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new Error(`${setting}: ${path} cannot be read (${errorCode(cause)})`, { cause })
  }
}
