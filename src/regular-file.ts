import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs'

/**
 * The error for a path that does not lead to a regular file. Opening such a file may block forever: a named pipe waits until its other end
 * is opened.
 */
class NotRegular extends Error {
  override readonly name = 'NotRegular'
  readonly code: string

  constructor(path: string, code: string) {
    super(`${path} is not a regular file (${code})`)
    this.code = code
  }
}

/** Throws `NotRegular` if there is something at `path` that is not a regular file. Opens nothing. */
export function refuseIrregular(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found !== undefined) refuseKind(path, found)
}

/** Opens a regular file for reading. The caller closes it. Throws `NotRegular`, or the error of the system. */
export function openRegular(path: string): number {
  refuseKind(path, statSync(path))
  // Open without waiting, because something else may have replaced the regular file meanwhile.
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

/** A code for the log. The system has one only for folders, so the others are made up in the same form. */
function codeOf(found: Stats): string {
  if (found.isDirectory()) return 'EISDIR'
  if (found.isFIFO()) return 'NOT_A_FILE_BUT_A_NAMED_PIPE'
  return found.isSocket() ? 'NOT_A_FILE_BUT_A_SOCKET' : 'NOT_A_FILE_BUT_A_DEVICE'
}
