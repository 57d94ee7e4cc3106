import { systemCode } from './errors.ts'

/** The meanings of the system's error codes, each as a clause without its full stop. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file or folder'],
  ['EACCES', 'permission is denied'],
  ['EPERM', 'permission is denied'],
  ['EISDIR', 'it is a folder'],
  ['ENOTDIR', 'a part of its path is no folder'],
  ['ELOOP', 'its links lead in a circle'],
  ['ENAMETOOLONG', 'its name is too long'],
  ['EMFILE', 'too many files are open'],
  ['ENFILE', 'too many files are open'],
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is used up'],
  ['EROFS', 'the file system is read-only'],
  ['EIO', 'the disk fails'],
  ['EADDRINUSE', 'another program has it'],
  ['EADDRNOTAVAIL', 'this machine has no such address'],
  ['ECONNREFUSED', 'nothing listens there'],
  ['ECONNRESET', 'the connection was ended from the other side'],
  ['EPIPE', 'the connection was ended from the other side'],
  ['ETIMEDOUT', 'there was no answer in time'],
  ['EHOSTUNREACH', 'no way leads there'],
  ['ENETUNREACH', 'no way leads there'],
  ['ENOTFOUND', 'the name is not found'],
  ['EAI_AGAIN', 'the name cannot be looked up now'],
])

/** Says in words why the system refused something. A rare code stands for itself; an error without one is unknown. */
export function systemReason(error: unknown): string {
  const code = systemCode(error)
  return code === null ? 'for an unknown reason' : reasonOfCode(code)
}

/** The same for a code alone. */
export function reasonOfCode(code: string): string {
  return REASONS.get(code) ?? code
}
