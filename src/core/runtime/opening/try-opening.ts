import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface Trial {
  /** The name of the file in error messages, such as the setting that names it. */
  readonly what: string
  readonly path: string
}

export interface TryOpeningOptions {
  readonly deadlineMs: number
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortSignal
  /** The program that opens the files, with its first arguments. The paths of the files follow. Absent: a shell. */
  readonly command?: readonly string[]
}

/** Returns files to open together. Called after all earlier groups have opened, because the earlier files may name these files. */
export type TrialGroup = () => readonly Trial[]

/** How long a file may take to open, when the relay starts or before a move of the store. */
export const OPENING_MS = 10_000
/** How long the program may take to start, even on a busy machine. */
const BEGINNING_MS = 30_000

/**
 * Prints the number of each file and then, if it is a regular file, opens it. The last number printed is that of the file that hangs. This is a
 * shell script, because a shell starts in a few milliseconds.
 */
const OPEN_EACH = 'n=0; for file do echo $n; if [ -f "$file" ]; then true < "$file"; fi; n=$((n + 1)); done 2>/dev/null'

/**
 * Opens files in a separate process, and kills that process if it does not end in time. A file on a network disk whose server is gone may
 * never open. If the relay opened such a file itself, the call would block a thread forever, and the relay could not exit.
 *
 * Rejects if a file does not open in time, with an error that names it, or if `signal` is aborted. Ignores files that are missing or not
 * readable, because the code that needs them gives a better report.
 */
export async function tryOpening(groups: readonly TrialGroup[], options: TryOpeningOptions): Promise<void> {
  for (const group of groups) {
    const trials = group()
    if (trials.length > 0) await openEach(trials, options)
  }
}

async function openEach(
  trials: readonly Trial[],
  { deadlineMs, signal, command = ['sh', '-c', OPEN_EACH] }: TryOpeningOptions,
): Promise<void> {
  const [program = '', ...args] = command
  const child = spawn(program, [...args, program, ...trials.map(({ path }) => path)], { stdio: ['ignore', 'pipe', 'ignore'] })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let at: number | null = null
  const late = () => {
    const { what, path } = trials[at ?? 0] ?? { what: 'a file', path: 'it' }
    const seconds = (at === null ? BEGINNING_MS : deadlineMs) / 1000
    reject(new Error(`${what}: ${path} did not open within ${seconds} s. Is it on a disk that does not answer?`))
  }
  let timer = setTimeout(late, BEGINNING_MS)
  createInterface({ input: child.stdout }).on('line', (line) => {
    at = Number(line)
    clearTimeout(timer)
    timer = setTimeout(late, deadlineMs)
  })
  // If the program is missing, skip the test: the files may open all the same.
  child.once('error', () => resolve())
  child.once('exit', () => resolve())
  const abort = () => reject(new Error('the relay is stopping'))
  signal?.addEventListener('abort', abort)
  if (signal?.aborted === true) abort()
  try {
    await promise
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    // Do not wait for the end of the program: a process that hangs in a system call cannot be killed.
    child.kill('SIGKILL')
    child.stdout.destroy()
    child.unref()
  }
}
