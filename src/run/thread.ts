import { type MessagePort, Worker } from 'node:worker_threads'

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
  readonly error?: unknown
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

export interface Hosted<V> {
  readonly verbs: V
  /** Resolves with what ended the thread, if it ends by itself. */
  readonly died: Promise<unknown>
}

/**
 * Hosts verbs on a thread: `file` is a module that calls `serveVerbs`. Resolves once it said it is ready. Every verb of `names` becomes a
 * message; calls are answered in the order the thread finishes them.
 */
export async function hostOnThread<V extends Verbs<V>>(
  file: URL,
  workerData: unknown,
  names: readonly (keyof V & string)[],
): Promise<Hosted<V>> {
  const worker = new Worker(file, { workerData })
  const pending = new Map<number, Pending>()
  let calls = 0
  const died = new Promise<unknown>((resolve) => {
    worker.once('error', resolve)
    worker.once('exit', (code) => resolve(new Error(`the writer thread ended with code ${code}`)))
  })
  void died.then((error) => {
    for (const { reject } of pending.values()) reject(error)
    pending.clear()
  })
  await Promise.race([
    new Promise((resolve) => worker.once('message', resolve)),
    died.then((error) => Promise.reject(error instanceof Error ? error : new Error(String(error)))),
  ])

  worker.on('message', ({ id, value, error }: Reply) => {
    const call = pending.get(id)
    pending.delete(id)
    if (error === undefined) call?.resolve(value)
    else call?.reject(error)
  })
  const call = (verb: string, args: readonly unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      const id = ++calls
      pending.set(id, { resolve, reject })
      worker.postMessage({ id, verb, args } satisfies Call, args.flatMap(buffersOf))
    })
  // A message carries no types: the verbs on both ends are the same interface, compiled together.
  const verbs = Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => call(name, args)])) as unknown as V
  return { verbs, died }
}

/** Blocks of bytes that an argument holds: they change hands instead of being copied, so their sender must not use them again. */
function buffersOf(value: unknown): readonly ArrayBuffer[] {
  return typeof value === 'object' && value !== null ? Object.values(value).filter((member) => member instanceof ArrayBuffer) : []
}

/** The other end, on the thread. A verb named `close` ends the thread after it answered. */
export function serveVerbs(port: MessagePort, verbs: Readonly<Record<string, (...args: never[]) => Promise<unknown>>>): void {
  port.on('message', ({ id, verb, args }: Call) => {
    const run = verbs[verb]
    const answer = (reply: Reply) => {
      port.postMessage(reply)
      if (verb === 'close') port.close()
    }
    if (run === undefined) return answer({ id, error: new Error(`the thread knows no verb ${verb}`) })
    run(...(args as never[])).then(
      (value) => answer({ id, value }),
      (error: unknown) => answer({ id, error: asError(error) }),
    )
  })
  port.postMessage('ready')
}

/** An error's own fields do not survive the message; its code is what tells a full disk from a bug. */
function asError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : ''
  return new Error(`${code}${error.message}`)
}
