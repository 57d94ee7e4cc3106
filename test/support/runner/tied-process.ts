import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { onTestFinished } from 'vitest'

/** Of the options of every process of the tests: it leads a group, so a tracer ends together with what it traces. */
export const ownGroup = { detached: true } as const

/** Reads who is tied (`+`) and who is not any more (`-`), and ends the others when nobody can tell it more: this process is gone, however it ended. */
const LEASH = `tied=
while read -r sign group; do
  if [ "$sign" = + ]; then tied="$tied $group "; else tied="\${tied%% $group *} \${tied#* $group }"; fi
done
for group in $tied; do kill -s KILL -- "-$group"; done`

let leash: Writable | null = null

/** One for all that this process starts. */
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
 * Kills a process and its group when its test ends, even a test that failed or timed out and so disposed of nothing; at the latest with this process, even
 * if that is killed. It is to be started with `ownGroup`.
 */
export function tieToTest<Child extends ChildProcess>(child: Child): Child {
  const { pid } = child
  // It could not be started, of which an event tells.
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
    // A hook started it for several tests, and the matching hook stops it.
  }
  return child
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nobody is left.
  }
}
