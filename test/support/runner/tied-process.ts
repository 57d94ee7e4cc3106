import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { onTestFinished } from 'vitest'

/** Makes a process that a test starts lead a group, so that a tracer and the process that it traces are killed together. */
export const ownGroup = { detached: true } as const

/** A shell script that reads which groups are tied (`+`) and untied (`-`). When this process ends, it kills the groups that are still tied. */
const LEASH = `tied=
while read -r sign group; do
  if [ "$sign" = + ]; then tied="$tied $group "; else tied="\${tied%% $group *} \${tied#* $group }"; fi
done
for group in $tied; do kill -s KILL -- "-$group"; done`

let leash: Writable | null = null

function tellLeash(sign: '+' | '-', group: number): void {
  if (leash === null) {
    const shell = spawn('/bin/sh', ['-c', LEASH], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    shell.unref()
    leash = shell.stdin
    if (leash instanceof Socket) leash.unref()
  }
  leash.write(`${sign} ${group}\n`)
}

/**
 * Kills a process and its group when its test ends, even if the test failed or timed out. Also kills them when this process ends, even by a kill.
 * Start the process with `ownGroup`.
 */
export function tieToTest<Child extends ChildProcess>(child: Child): Child {
  const { pid } = child
  // The process could not be started; its `error` event says why.
  if (pid === undefined) return child
  tellLeash('+', pid)
  const end = async () => {
    const isEnded = child.exitCode !== null || child.signalCode !== null
    const ended = isEnded ? null : once(child, 'exit')
    killGroup(pid)
    await ended
    tellLeash('-', pid)
  }
  try {
    onTestFinished(end)
  } catch {
    // `onTestFinished` throws outside a test. There, a hook has started the process, and the matching hook stops it.
  }
  return child
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended already.
  }
}
