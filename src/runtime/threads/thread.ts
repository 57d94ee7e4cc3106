import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { systemCode } from '../../domain/errors.ts'

/** Verbs with plain data in and out. */
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
  /** The error's own, which does not survive the message. */
  readonly code?: string | null
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

export interface Hosted<V> {
  readonly verbs: V
  /** Resolves with what ended the thread, if it ends by itself. */
  readonly died: Promise<unknown>
  /**
   * Takes in at once what the thread has answered. Its answers come by themselves, but behind everything else that this turn of the event
   * loop has to do, and all that time the thread may have nothing to do. Costs next to nothing when there is no answer.
   */
  readonly hear: () => void
}

/** How the thread answers: on a line of its own, with a count of the answers that can be looked at without listening. */
interface Line {
  readonly port: MessagePort
  readonly answered: Int32Array
}

export interface ThreadOptions {
  /** What the system calls it, for who looks at what takes the processors. */
  readonly name: string
  /** What its module finds as `workerData`. */
  readonly data: unknown
  /** Ends of channels that the data holds: they go over to the thread. */
  readonly ends?: readonly MessagePort[]
  /**
   * The most its young objects may take, in MB. For one that makes nothing but what lives for a message, more is only more memory. A process
   * that is started with `--max-semi-space-size`, as the image is, gives three times that to every thread instead.
   */
  readonly youngMb: number
}

/**
 * Hosts verbs on a thread: `file` is a module that calls `serveVerbs`. Resolves once it said it is ready. Every verb of `names` becomes a
 * message; calls are answered in the order the thread finishes them.
 */
export async function hostOnThread<V extends Verbs<V>>(
  file: URL,
  { name, data, ends = [], youngMb }: ThreadOptions,
  names: readonly (keyof V & string)[],
): Promise<Hosted<V>> {
  const worker = new Worker(file, {
    name,
    workerData: data,
    transferList: [...ends],
    resourceLimits: { maxYoungGenerationSizeMb: youngMb },
  })
  const died = new Promise<unknown>((resolve) => {
    worker.once('error', resolve)
    worker.once('exit', (code) => resolve(new Error(`the thread "${name}" ended with code ${code}`)))
  })
  await Promise.race([isReady(worker), died.then((error) => Promise.reject(error instanceof Error ? error : new Error(String(error))))])
  const { verbs, hear, fail } = openCalls<V>(worker, names)
  void died.then(fail)
  return { verbs, died, hear }
}

export interface CalledThere<V> extends Pick<Hosted<V>, 'verbs' | 'hear'> {
  /** No more calls; what is under way is not answered any more. */
  close(): void
}

/** The same for verbs that are served on the other end of a channel, by a thread that somebody else hosts. */
export async function callThere<V extends Verbs<V>>(port: MessagePort, names: readonly (keyof V & string)[]): Promise<CalledThere<V>> {
  const gone = new Promise<Error>((resolve) => port.once('close', () => resolve(new Error('the thread on the other end is gone'))))
  await Promise.race([isReady(port), gone.then((error) => Promise.reject(error))])
  const { verbs, hear, fail, close } = openCalls<V>(port, names)
  void gone.then(fail)
  return {
    verbs,
    hear,
    close() {
      port.close()
      close()
    },
  }
}

function isReady(end: Worker | MessagePort): Promise<unknown> {
  return new Promise((resolve) => end.once('message', resolve))
}

/** The calling end of verbs. `fail`: nobody will answer any more. */
function openCalls<V extends Verbs<V>>(there: Worker | MessagePort, names: readonly (keyof V & string)[]) {
  const pending = new Map<number, Pending>()
  let calls = 0
  const { port1, port2 } = new MessageChannel()
  const answered = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  there.postMessage({ port: port2, answered } satisfies Line, [port2])
  let heard = 0
  const take = ({ id, value, error, code }: Reply) => {
    heard++
    const call = pending.get(id)
    pending.delete(id)
    if (error === undefined) call?.resolve(value)
    else call?.reject(typeof code === 'string' ? Object.assign(error, { code }) : error)
  }
  port1.on('message', take)
  const hear = () => {
    while (Atomics.load(answered, 0) !== heard) {
      const received: { readonly message: Reply } | undefined = receiveMessageOnPort(port1)
      if (received === undefined) return
      take(received.message)
    }
  }
  const fail = (error: unknown) => {
    // Its last answers may still lie on the line.
    hear()
    for (const { reject } of pending.values()) reject(error)
    pending.clear()
  }
  const call = (verb: string, args: readonly unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      const id = ++calls
      pending.set(id, { resolve, reject })
      there.postMessage({ id, verb, args } satisfies Call, args.flatMap(buffersOf))
    })
  // A message carries no types: the verbs on both ends are the same interface, compiled together.
  const verbs = Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => call(name, args)])) as unknown as V
  return { verbs, hear, fail, close: () => port1.close() }
}

/** Blocks of bytes that an argument holds: they change hands instead of being copied, so their sender must not use them again. */
function buffersOf(value: unknown): readonly ArrayBuffer[] {
  return typeof value === 'object' && value !== null ? Object.values(value).filter((member) => member instanceof ArrayBuffer) : []
}

/**
 * The other end, on the thread. A verb named `close` ends the thread after it answered. Calls begin at the end of a turn of the event loop: as
 * they came in, one line would be emptied before the next is looked at, and whoever asks ahead on it would keep everybody else waiting.
 */
export function serveVerbs(port: MessagePort, verbs: Readonly<Record<string, (...args: never[]) => Promise<unknown>>>): void {
  port.once('message', (line: Line) => port.on('message', (call: Call) => setImmediate(serve, call, line)))

  function serve({ id, verb, args }: Call, line: Line): void {
    const run = verbs[verb]
    const answer = (reply: Reply) => {
      Atomics.add(line.answered, 0, 1)
      line.port.postMessage(reply)
      if (verb !== 'close') return
      line.port.close()
      port.close()
    }
    const running = run?.(...(args as never[])) ?? Promise.reject(new Error(`the thread knows no verb ${verb}`))
    running.then(
      (value) => answer({ id, value }),
      (error: unknown) => answer({ id, error: asError(error), code: systemCode(error) }),
    )
  }
  port.postMessage('ready')
}

/** An error as it travels. Its code, which tells a full disk from a bug, stands in its message too, for who only prints it. */
export function asError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : ''
  return new Error(`${code}${error.message}`)
}
