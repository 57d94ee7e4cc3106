import { execFileSync } from 'node:child_process'

/** Makes a named pipe. Opening it to read or to write blocks for ever, because nobody opens the other end. */
export function makePipe(path: string): string {
  execFileSync('mkfifo', [path])
  return path
}
