import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs'

/** A path leads to something that is no regular file: opening it may wait for ever, as a named pipe does for its other end. */
class NotRegular extends Error {
  override readonly name = 'NotRegular'
  readonly code: string

  constructor(path: string, code: string) {
    super(`${path} is not a regular file (${code})`)
    this.code = code
  }
}

/** Throws `NotRegular` if something is at `path` that is not a regular file. Opens nothing. */
export function refuseIrregular(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found !== undefined) refuseKind(path, found)
}

/** Opens a regular file for reading. The caller closes it. Throws `NotRegular`, or what the system says. */
export function openRegular(path: string): number {
  refuseKind(path, statSync(path))
  // Without waiting, because the file may have been replaced since by something that is not regular.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    refuseKind(path, fstatSync(file))
    return file
  } catch (error) {
    closeSync(file)
    throw error
  }
}

/** Reads a regular file, or throws as `openRegular` does. */
export function readRegular(path: string): Buffer {
  const file = openRegular(path)
  try {
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

function refuseKind(path: string, found: Stats): void {
  if (!found.isFile()) throw new NotRegular(path, codeOf(found))
}

/** The system has a code for a folder alone; the others are words for the operator in the same form. */
function codeOf(found: Stats): string {
  if (found.isDirectory()) return 'EISDIR'
  if (found.isFIFO()) return 'NOT_A_FILE_BUT_A_NAMED_PIPE'
  return found.isSocket() ? 'NOT_A_FILE_BUT_A_SOCKET' : 'NOT_A_FILE_BUT_A_DEVICE'
}
