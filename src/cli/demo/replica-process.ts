import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseDocument } from 'yaml'
import type { DemoReplica } from './replica.ts'

export interface ReplicaOptions {
  readonly name: string
  /** The folder for its config file. */
  readonly folder: string
  /** Settings that differ from those of the demo's config, each with the path of its key. */
  readonly settings: readonly (readonly [path: readonly (string | number)[], value: unknown])[]
  /** The demo's config file. */
  readonly configFile: string
  /** Called with the relay's warnings and errors. */
  readonly onTrouble: (message: string) => void
}

/** How long a stop may wait for requests in flight, before the process is killed. */
const STOP_MAX_MS = 15_000

/** Starts `parcel-relay serve` in a separate process. Resolves when it is ready. */
export async function startReplica({ name, folder, settings, configFile, onTrouble }: ReplicaOptions): Promise<DemoReplica> {
  const path = join(folder, `${name.replace(' ', '-')}.yaml`)
  const document = parseDocument(readFileSync(configFile, 'utf8'))
  for (const [key, value] of settings) document.setIn(key, value)
  writeFileSync(path, document.toString(), { mode: 0o600 })

  const [program = ''] = process.argv.slice(1)
  const child = spawn(process.execPath, [...process.execArgv, program, 'serve', '--config', path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const died = once(child, 'exit')
  endWithThisProcess(child)
  const ready = await Promise.race([readLog(child, (message) => onTrouble(`${name}: ${message}`)), died.then(() => null)])
  if (ready === null) throw new Error(`${name} did not start`)
  const isRunning = () => child.exitCode === null && child.signalCode === null
  return {
    name,
    pid: child.pid ?? 0,
    ...ready,
    died,
    isRunning,
    async stop() {
      if (isRunning()) child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS)
      await died
      clearTimeout(late)
    },
  }
}

/** Ends the relay with this process, even if this process is killed: a shell waits until its standard input closes. */
function endWithThisProcess(child: ChildProcess): void {
  const leash = spawn('/bin/sh', ['-c', 'cat >/dev/null; kill -KILL "$0"', String(child.pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  leash.unref()
  child.once('exit', () => leash.kill('SIGKILL'))
}

type Addresses = Pick<DemoReplica, 'publicUrl' | 'internalUrl'>

/** Resolves with the addresses from the line that reports that the relay is ready. Passes warnings and errors to `onTrouble`. */
function readLog({ stdout }: ChildProcess, onTrouble: (message: string) => void): Promise<Addresses> {
  return new Promise((resolve) => {
    if (stdout === null) return
    createInterface({ input: stdout }).on('line', (text) => {
      const line: unknown = JSON.parse(text)
      const textOf = (name: string) => (typeof line === 'object' && line !== null ? String(Reflect.get(line, name)) : '')
      if (textOf('msg') === 'relay ready') resolve({ publicUrl: textOf('public'), internalUrl: textOf('internal') })
      else if (['warn', 'error'].includes(textOf('level'))) onTrouble(textOf('msg'))
    })
  })
}
