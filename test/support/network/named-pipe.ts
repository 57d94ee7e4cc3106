import { execFileSync } from 'node:child_process'

/** Makes a named pipe, which nobody else opens: whoever opens it to read or to write waits for ever. */
export function makePipe(path: string): string {
  execFileSync('mkfifo', [path])
  return path
}
