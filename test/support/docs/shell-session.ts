import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { ownGroup, tieToTest } from '../runner/tied-process.ts'

/**
 * Returns the commands in those blocks of a page that begin with "```sh SESSION", in order. A command is one line, but a backslash
 * at the end of the line or a here-document continues it.
 */
export function documentedCommands(page: string, session: string): readonly string[] {
  const blocks = [...readFileSync(page, 'utf8').matchAll(/^ *```sh (\S+)\n(.*?)^ *```$/gms)]
  const commands = blocks.filter(([, name]) => name === session).flatMap(([, , text = '']) => commandsIn(text))
  if (commands.length === 0) throw new Error(`${page} has no block of the session ${session}`)
  return commands
}

/** Returns the commands in the comment at the top of a compose file. */
export function headerCommands(file: string): readonly string[] {
  const [header = ''] = readFileSync(file, 'utf8').split(/^[^#\n]/m)
  return [...header.matchAll(/^# {3}(\S.*)$/gm)].map(([, command = '']) => command)
}

function commandsIn(text: string): readonly string[] {
  const commands: string[] = []
  let open = ''
  for (const line of text.split('\n')) {
    open = open === '' ? line : `${open}\n${line}`
    const end = /<<-?\s*'?(\w+)'?/.exec(open)?.[1]
    if (line.endsWith('\\') || (end !== undefined && line.trim() !== end)) continue
    if (!/^\s*(#|$)/.test(open)) commands.push(open)
    open = ''
  }
  return commands
}

export interface TypedCommand {
  readonly command: string
  readonly status: number
  /** The text that the command wrote to either output. */
  readonly output: string
}

export interface SessionOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** The reader's answers, in turn, where a command asks with `read`. */
  readonly answers?: readonly string[]
}

const DONE = '\u001e'

/** Types commands into one bash, as a reader does: each after the one before has ended. The shell and its processes end with the test. */
export async function typeInShell(
  commands: readonly string[],
  { cwd, env, answers = [] }: SessionOptions,
): Promise<readonly TypedCommand[]> {
  const shell = tieToTest(spawn('bash', ['--noprofile', '--norc'], { ...ownGroup, cwd, env, stdio: ['pipe', 'pipe', 'inherit'] }))
  const outputs = outputsOf(shell.stdout)
  const left = [...answers]
  shell.stdin.write('exec 2>&1\n')
  const typed: TypedCommand[] = []
  for (const command of commands) {
    const asked = [...command.matchAll(/\bread -rs\b/g)].map(() => `${left.shift() ?? ''}\n`)
    shell.stdin.write(`${command}\n${asked.join('')}printf '${DONE}%d${DONE}' "$?"\n`)
    const { value } = await outputs.next()
    if (value === undefined) throw new Error(`the shell ended at: ${command}`)
    typed.push({ command, ...value })
  }
  return typed
}

/** The shell prints the exit code of each command between two marks. */
async function* outputsOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Omit<TypedCommand, 'command'>, undefined> {
  let text = ''
  for await (const chunk of stream) {
    text += chunk.toString()
    const [output, status, rest] = text.split(DONE)
    if (output === undefined || status === undefined || rest === undefined) continue
    text = rest
    yield { output, status: Number(status) }
  }
}

export const failedOf = (typed: readonly TypedCommand[]): readonly TypedCommand[] => typed.filter(({ status }) => status !== 0)
