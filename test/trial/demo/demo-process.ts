import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'

/** Starts the demo with the shipped command, in its own process group and with its own temporary folder. */
export function startDemo(flags: readonly string[]) {
  const { args, env } = shipped()
  const folder = temporaryFolder()
  // As root, the demo runs its PostgreSQL server as another user, who needs access to its data there.
  chmodSync(folder, 0o755)
  const child = tieToTest(
    spawn(process.execPath, [...args, 'demo', ...flags], {
      ...ownGroup,
      env: { ...env, TMPDIR: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', (line) => lines.push(line))
  const ended = once(child, 'close')
  /** Waits until the demo has printed `text`. If the demo ends first, this fails with all its output. */
  const said = (text: string) =>
    expect
      .poll(
        () => {
          const isSaid = lines.some((line) => line.includes(text))
          if (!isSaid && child.exitCode !== null) throw new Error(`the demo has ended with ${child.exitCode}:\n${lines.join('\n')}`)
          return isSaid
        },
        { interval: 50, message: `said "${text}"` },
      )
      .toBe(true)
  const between = (from: string, to: string) => {
    const start = lines.findIndex((line) => line.includes(from))
    return lines.slice(start + 1, lines.indexOf(to, start))
  }
  const isAlone = () => {
    try {
      // Signal 0 only checks whether a process of the group exists.
      process.kill(-(child.pid ?? 0), 0)
      return false
    } catch {
      return readdirSync(folder).length === 0
    }
  }
  return { child, lines, folder, ended, said, between, isAlone }
}

/** Returns the first address in the line that contains `name`. */
export const addressOf = (lines: readonly string[], name: string) =>
  /http:\/\/127\.0\.0\.1:\d+/.exec(lines.find((line) => line.includes(name)) ?? '')?.[0] ?? ''
