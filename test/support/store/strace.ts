import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { type RelayProcess, type Sections, writeConfig } from '../relay/relay.ts'
import { shipped } from '../runner/shipped.ts'
import { ownGroup, tieToTest } from '../runner/tied-process.ts'

/** `enteredAt` and `leftAt` are the lines of the trace at which the call began and ended. */
export interface SystemCall {
  readonly name: string
  /** If the first argument is a file descriptor, the path of its file. Otherwise the first string argument, decoded. */
  readonly path: string
  readonly args: string
  readonly result: number
  readonly enteredAt: number
  readonly leftAt: number
}

export const STORE_AND_SOCKET_CALLS = 'pwrite64,write,writev,sendto,sendmsg,fsync,fdatasync,ftruncate,openat,unlink,rename,fallocate'

export interface TracedRelay extends RelayProcess {
  /** What it has printed so far, on stdout and stderr. */
  readonly output: () => string
  /** Sends SIGKILL to the relay itself. Resolves when the tracer has written its output. */
  kill(): Promise<void>
}

export interface TraceOptions {
  /** Options of strace: what to trace, the output file, what to inject. Absent: the relay is not traced. */
  readonly strace?: readonly string[]
  /** A command that runs the relay with fewer rights or with a limit. */
  readonly wrapper?: readonly string[]
  readonly pragmas?: Readonly<Record<string, string | number>>
  /** The path of a file. While the file contains a SQLite error code, every write transaction fails with that code. */
  readonly failure?: string
  readonly sections?: Sections
}

/** Nothing listens here. These relays only receive pushes. */
const NO_CARRIER = 'http://127.0.0.1:1'

/** Starts a relay process. Rejects with its output if it ends before it is ready. */
export async function spawnTraced(
  folder: string,
  { strace = [], wrapper = [], pragmas, failure, sections = {} }: TraceOptions = {},
): Promise<TracedRelay> {
  // At this level the relay logs its addresses.
  const configPath = writeConfig(folder, NO_CARRIER, { log: { level: 'info' }, ...sections })
  const preload = [
    ...(pragmas === undefined ? [] : ['--import', new URL('./weaker-store.ts', import.meta.url).href]),
    ...(failure === undefined ? [] : ['--import', new URL('./failing-store.ts', import.meta.url).href]),
  ]
  const [command, ...args] = [
    ...(strace.length === 0 ? [] : ['strace', '-f', '--seccomp-bpf', ...strace]),
    ...wrapper,
    process.execPath,
    ...preload,
    ...shipped().args,
    'serve',
    '--config',
    configPath,
  ]
  const env = { ...shipped().env, RELAY_TEST_PRAGMAS: JSON.stringify(pragmas ?? {}), RELAY_TEST_FAILURE: failure }
  const child = tieToTest(spawn(command, args, { ...ownGroup, stdio: ['ignore', 'pipe', 'pipe'], env }))
  let output = ''
  child.stderr.on('data', (text: Buffer) => {
    output += text.toString()
  })
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  const ready = new Promise<{ public: string; internal: string }>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`
      if (!line.startsWith('{')) return
      const said: unknown = JSON.parse(line)
      if (isReady(said)) resolve(said)
    })
  })
  const said = await Promise.race([
    ready,
    ended.then(({ code }) => Promise.reject(new NotReady(`the relay ended with ${code} before it was ready: ${output}`, code))),
  ])
  return {
    publicUrl: said.public,
    internalUrl: said.internal,
    process: child,
    ended,
    output: () => output,
    async kill() {
      process.kill(relayPid(child, strace.length > 0), 'SIGKILL')
      await ended
    },
  }
}

export async function tracedRelayOfTest(folder: string, options: TraceOptions = {}): Promise<TracedRelay> {
  const relay = await spawnTraced(folder, options)
  onTestFinished(async () => {
    if (relay.process.exitCode === null && relay.process.signalCode === null) await relay.kill()
  })
  return relay
}

export class NotReady extends Error {
  readonly code: number | null
  constructor(message: string, code: number | null) {
    super(message)
    this.code = code
  }
}

/** If the relay is traced, it is the tracer's only child. */
function relayPid(child: ChildProcess, traced: boolean): number {
  const pid = child.pid ?? 0
  return traced ? Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()) : pid
}

function isReady(said: unknown): said is { public: string; internal: string } {
  return typeof said === 'object' && said !== null && 'msg' in said && said.msg === 'relay ready'
}

const LINE = /^(\d+)\s+(?:<\.\.\. (\w+) resumed>(.*)|(\w+)\((.*))$/

/** Reads a file that `strace -f -y -xx -o` has written. The calls are in the order in which they began. */
export function readTrace(path: string): readonly SystemCall[] {
  const open = new Map<string, { name: string; args: string; enteredAt: number }>()
  const calls: SystemCall[] = []
  const end = (name: string, text: string, enteredAt: number, leftAt: number) => {
    const split = text.lastIndexOf(') ')
    const args = text.slice(0, split)
    const result = Number(/= (-?\d+)/.exec(text.slice(split))?.[1] ?? Number.NaN)
    calls.push({ name, args, path: pathOf(args), result, enteredAt, leftAt })
  }
  for (const [at, line] of readFileSync(path, 'latin1').split('\n').entries()) {
    const match = LINE.exec(line)
    if (match === null) continue
    const [, pid = '', resumed, rest = '', name = '', text = ''] = match
    const begun = resumed === undefined ? undefined : open.get(pid)
    if (begun !== undefined) end(begun.name, `${begun.args}${rest}`, begun.enteredAt, at)
    else if (text.endsWith('<unfinished ...>')) open.set(pid, { name, args: text.slice(0, -'<unfinished ...>'.length), enteredAt: at })
    else if (resumed === undefined) end(name, text, at, at)
  }
  return calls.toSorted((a, b) => a.enteredAt - b.enteredAt)
}

/** Returns the first string in a call's arguments, as bytes. */
export function dataOf(args: string): Buffer {
  return unhex(/"((?:\\x[0-9a-f]{2})*)"/.exec(args)?.[1] ?? '')
}

function pathOf(args: string): string {
  const file = /^\d+<([^>]*)>/.exec(args)?.[1]
  return (file === undefined ? dataOf(args) : unhex(file)).toString('latin1')
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}
