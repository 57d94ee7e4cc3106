import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs'

/**
 * The error for a path that does not lead to a regular file. Opening other kinds of file may block forever. For example, a named pipe waits
 * until a program opens its other end.
 */
class NotRegular extends Error {
  override readonly name = 'NotRegular'
  readonly code: string

  constructor(path: string, code: string) {
    super(`${path} is not a regular file (${code})`)
    this.code = code
  }
}

/** Whether something is at `path`. Throws if nobody can know, for example because the disk fails: that is no absence. */
export function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}

/** Gives a system error that names no path, as those of descriptors and databases, the path of the file. Returns the error. */
export function naming(path: string, error: unknown): unknown {
  return error instanceof Error && 'code' in error && !('path' in error) ? Object.assign(error, { path }) : error
}

/** Does work on a file, whose path its errors then name. */
export function onFile<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw naming(path, error)
  }
}

/** Throws `NotRegular` if something other than a regular file is at `path`. Opens nothing. */
export function refuseIrregular(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found !== undefined) refuseKind(path, found)
}

/** Opens a regular file for reading, and returns its descriptor, which the caller closes. Throws `NotRegular` or a system error. */
export function openRegular(path: string): number {
  refuseKind(path, statSync(path))
  // Open without blocking and check again, because a named pipe may have replaced the file since the first check.
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

/** Returns an error code for the log. The system has a code only for folders. */
function codeOf(found: Stats): string {
  if (found.isDirectory()) return 'EISDIR'
  if (found.isFIFO()) return 'NOT_A_FILE_BUT_A_NAMED_PIPE'
  return found.isSocket() ? 'NOT_A_FILE_BUT_A_SOCKET' : 'NOT_A_FILE_BUT_A_DEVICE'
}
