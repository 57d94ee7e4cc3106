import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

/** One system call of some thread, from its entry to its return. */
export interface SystemCall {
  readonly name: string
  /** As strace prints them, files with their paths. */
  readonly args: string
  /** Places in the trace, so that calls of several threads can be put in order. */
  readonly enteredAt: number
  readonly returnedAt: number
  readonly succeeded: boolean
}

/** A command prefix that writes down which system calls a program makes, and what it wrote once the program has ended. */
export function startTrace(folder: string, calls: readonly string[]) {
  if (spawnSync('strace', ['-V']).error !== undefined)
    throw new Error('this test watches system calls and needs strace: apt-get install strace (.ci/run does)')
  const file = join(folder, 'strace.out')
  return {
    // -D: the program stays our own child and takes our signals.
    prefix: ['strace', '-D', '-f', '--seccomp-bpf', '-y', '-s', '24', '-e', `trace=${calls.join(',')}`, '-o', file],
    async read(pid: number | undefined): Promise<readonly SystemCall[]> {
      const isWhole = () => new RegExp(`^${pid} +\\+\\+\\+ `, 'm').test(readFileSync(file, 'utf8'))
      await expect.poll(isWhole, { timeout: 10_000, message: 'the trace ends' }).toBe(true)
      return parseTrace(readFileSync(file, 'utf8'))
    },
  }
}

/** A call during which another thread made one is printed in two parts, `... <unfinished ...>` and `<... name resumed>...`. */
export function parseTrace(text: string): readonly SystemCall[] {
  const open = new Map<string, { readonly name: string; readonly args: string; readonly enteredAt: number }>()
  return text.split('\n').flatMap((line, at): readonly SystemCall[] => {
    const [, pid = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const result = / = (-?\d+|\?)/.exec(rest.slice(rest.lastIndexOf(')')))?.[1] ?? '?'
    const ended = { returnedAt: at, succeeded: /^\d+$/.test(result) }
    const resumed = open.get(pid)
    if (rest.startsWith('<...') && resumed !== undefined) {
      open.delete(pid)
      return [{ ...resumed, ...ended }]
    }
    const [, name = '', args = ''] = /^(\w+)\((.*)$/.exec(rest) ?? []
    if (name === '') return []
    if (rest.endsWith('<unfinished ...>')) {
      open.set(pid, { name, args, enteredAt: at })
      return []
    }
    return [{ name, args, enteredAt: at, ...ended }]
  })
}
