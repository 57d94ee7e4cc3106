import { setTimeout as pause } from 'node:timers/promises'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { systemCode } from '../../domain/errors.ts'

/** Asynchronous functions whose arguments and results are plain data, so that another thread can call them. */
type Verbs<V> = { readonly [Name in keyof V]: (...args: never[]) => Promise<unknown> }

interface Call {
  readonly id: number
  readonly verb: string
  readonly args: readonly unknown[]
}

interface Reply {
  readonly id: number
  readonly value?: unknown
  readonly error?: Error
  /** The error's code, which the copy of an error in a message loses. */
  readonly code?: string | null
}

export interface Hosted<V> {
  readonly verbs: V
  /** Resolves with the reason when the thread ends. */
  readonly died: Promise<unknown>
  /** Handles the replies that have arrived, without waiting for the end of this turn of the event loop. Costs little if there are none. */
  readonly drainReplies: () => void
  /** Ends the thread without waiting for its work. Calls without a reply reject. */
  readonly end: () => Promise<unknown>
}

/** The channel for replies. `answered`, in shared memory, counts the sent replies. So the caller sees whether a reply has arrived. */
interface Line {
  readonly port: MessagePort
  readonly answered: Int32Array
}

interface ThreadOptions {
  /** The thread's name in tools such as `top -H`. */
  readonly name: string
  readonly data: unknown
  /** The message ports in `data`, which are transferred to the thread. */
  readonly ends?: readonly MessagePort[]
  /**
   * The largest young generation of V8's heap, in MB. It can be small for a thread whose objects live only for one message. If the process was
   * started with `--max-semi-space-size`, as in the container image, every thread gets three times the value of that flag instead.
   */
  readonly youngMb: number
}

const threads = new Set<Worker>()

/** Ends every hosted thread, and resolves when all have ended. Never resolves if a thread hangs in a system call. */
async function endThreads(): Promise<void> {
  await Promise.all([...threads].map((thread) => thread.terminate()))
}

/**
 * Starts a thread whose functions (verbs) this thread can call. `file` is a module that calls `serveVerbs<V>`. Resolves when the thread has sent
 * the names of its verbs. Replies come in the order in which the calls finish.
 */
export async function hostOnThread<V extends Verbs<V>>(file: URL, { name, data, ends = [], youngMb }: ThreadOptions): Promise<Hosted<V>> {
  const worker = new Worker(file, {
    name,
    workerData: data,
    transferList: [...ends],
    resourceLimits: { maxYoungGenerationSizeMb: youngMb },
  })
  threads.add(worker)
  worker.once('exit', () => threads.delete(worker))
  const died = new Promise<unknown>((resolve) => {
    worker.once('error', resolve)
    worker.once('exit', (code) => resolve(new Error(`the thread "${name}" ended with code ${code}`)))
  })
  const failed = died.then<never>((error) => Promise.reject(error instanceof Error ? error : new Error(String(error))))
  const names = await Promise.race([namesFrom(worker), failed])
  const { verbs, drainReplies, fail } = openCalls<V>(worker, names)
  void died.then(fail)
  return { verbs, died, drainReplies, end: () => worker.terminate() }
}

interface CalledThere<V> extends Pick<Hosted<V>, 'verbs' | 'drainReplies'> {
  /** Closes the connection. Calls that have no reply yet never settle. */
  close(): void
}

/** Connects to the verbs that a running thread serves at the other end of a channel. */
export async function callThere<V extends Verbs<V>>(port: MessagePort): Promise<CalledThere<V>> {
  const gone = new Promise<Error>((resolve) => port.once('close', () => resolve(new Error('the thread on the other end is gone'))))
  const names = await Promise.race([namesFrom(port), gone.then<never>((error) => Promise.reject(error))])
  const { verbs, drainReplies, fail, close } = openCalls<V>(port, names)
  void gone.then(fail)
  return {
    verbs,
    drainReplies,
    close() {
      port.close()
      close()
    },
  }
}

function namesFrom(end: Worker | MessagePort): Promise<readonly string[]> {
  return new Promise((resolve) => end.once('message', resolve))
}

/** Opens the caller's end. `fail` rejects all calls that have no reply yet. */
function openCalls<V extends Verbs<V>>(there: Worker | MessagePort, names: readonly string[]) {
  const pending = new Map<number, { readonly resolve: (value: unknown) => void; readonly reject: (error: unknown) => void }>()
  let calls = 0
  const { port1, port2 } = new MessageChannel()
  const answered = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  there.postMessage({ port: port2, answered } satisfies Line, [port2])
  let drained = 0
  const take = ({ id, value, error, code }: Reply) => {
    drained++
    const call = pending.get(id)
    pending.delete(id)
    if (error === undefined) call?.resolve(value)
    else call?.reject(typeof code === 'string' ? Object.assign(error, { code }) : error)
  }
  port1.on('message', take)
  const drainReplies = () => {
    while (Atomics.load(answered, 0) !== drained) {
      const received: { readonly message: Reply } | undefined = receiveMessageOnPort(port1)
      if (received === undefined) return
      take(received.message)
    }
  }
  const fail = (error: unknown) => {
    // The last replies may still be in the channel.
    drainReplies()
    for (const { reject } of pending.values()) reject(error)
    pending.clear()
  }
  const call = (verb: string, args: readonly unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      const id = ++calls
      pending.set(id, { resolve, reject })
      there.postMessage({ id, verb, args } satisfies Call, args.flatMap(buffersOf))
    })
  // Messages carry no types. Both ends use the interface `V`.
  const verbs = Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => call(name, args)])) as unknown as V
  return { verbs, drainReplies, fail, close: () => port1.close() }
}

/** The buffers in an argument are transferred, not copied. So the caller must not use them again. */
function buffersOf(value: unknown): readonly ArrayBuffer[] {
  return typeof value === 'object' && value !== null ? Object.values(value).filter((member) => member instanceof ArrayBuffer) : []
}

/**
 * Serves verbs on the thread's end of the channel. After the reply to a verb named `close`, both channels are closed, so that the thread can end.
 * Node handles all messages of a channel before it looks at the next channel. So each call waits for `setImmediate`: otherwise a busy channel
 * could block the others.
 */
export function serveVerbs<V extends Verbs<V>>(port: MessagePort, verbs: V): void {
  const byName = new Map<string, (...args: never[]) => Promise<unknown>>(Object.entries(verbs))
  port.once('message', (line: Line) => port.on('message', (call: Call) => setImmediate(serve, call, line)))

  function serve({ id, verb, args }: Call, line: Line): void {
    const run = byName.get(verb)
    const answer = (reply: Reply) => {
      Atomics.add(line.answered, 0, 1)
      line.port.postMessage(reply)
      if (verb !== 'close') return
      line.port.close()
      port.close()
    }
    const running = run?.(...(args as never[])) ?? Promise.reject(new Error(`unknown verb ${verb}`))
    running.then(
      (value) => answer({ id, value }),
      (error: unknown) => answer({ id, error: asError(error), code: systemCode(error) }),
    )
  }
  port.postMessage([...byName.keys()])
}

/** Makes an error for a message to another thread. The copy there loses its code, so the code is put into the text. */
export function asError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : ''
  return new Error(`${code}${error.message}`)
}

/** How long the process waits for threads and file operations to end. Then it kills itself. */
const GRACE_MS = 1000
const LOOK_EVERY_MS = 20

/**
 * Ends this process even if a thread hangs. `process.exit` waits for every thread, and would wait forever for a thread in a system call that
 * never returns. In that case the process kills itself, and so ends with a signal and not with `code`.
 */
export async function endProcess(code: number): Promise<never> {
  const late = pause(GRACE_MS, false, { ref: true })
  if (await Promise.race([endsByItself(), late])) process.exit(code)
  process.kill(process.pid, 'SIGKILL')
  return await new Promise<never>(() => undefined)
}

async function endsByItself(): Promise<true> {
  await endThreads()
  // Operations on files and look-ups of names run on Node's internal threads, so wait for them too.
  while (process.getActiveResourcesInfo().some((name) => /^FSReq|AddrInfo/.test(name))) await pause(LOOK_EVERY_MS)
  return true
}

/** How long changes that nobody waits for are collected before they are reported. Every report wakes another thread, which costs time. */
const INTERVAL_MS = 20

/**
 * Collects changes on one thread until another thread asks for a report of them.
 * A change that another thread waits for is reported at the end of the turn of the event loop, together with all other changes. `gather`
 * returns all changes since its last call.
 */
export function createTurnReport<Report>(gather: () => Report) {
  let asked: ((report: Report) => void) | null = null
  let hasChanged = false
  let isAwaited = false
  let isDue = false
  let interval: NodeJS.Timeout | null = null
  let flushed: (() => void)[] = []

  function flush(): void {
    isDue = false
    if (asked === null || !hasChanged) return
    if (interval !== null) clearTimeout(interval)
    interval = null
    const answer = asked
    asked = null
    hasChanged = false
    isAwaited = false
    answer(gather())
    for (const resolve of flushed) resolve()
    flushed = []
  }

  function flushSoon(): void {
    if (asked === null || !hasChanged) return
    if (!isAwaited) interval ??= setTimeout(flush, INTERVAL_MS)
    else if (!isDue) {
      isDue = true
      setImmediate(flush)
    }
  }

  return {
    /** Notes that something has changed. `awaited`: another thread waits for this change, so the report must not be delayed. */
    changed(awaited: boolean) {
      hasChanged = true
      isAwaited ||= awaited
      flushSoon()
    },
    /** Resolves with the changes since the last report, when there are any. Only one caller may wait at a time. */
    next: () =>
      new Promise<Report>((resolve) => {
        asked = resolve
        flushSoon()
      }),
    /** Reports at once, or as soon as a caller waits. Resolves when everything that has changed before the call is reported. */
    flush: () =>
      new Promise<void>((resolve) => {
        if (!hasChanged) return resolve()
        flushed.push(resolve)
        isAwaited = true
        flush()
      }),
  }
}
