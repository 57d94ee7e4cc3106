import { MessageChannel } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { callThere, hostOnThread, serveVerbs } from '../../../../src/core/runtime/threads/thread.ts'

interface Echo {
  echo(value: string): Promise<string>
  fail(reason: string): Promise<string>
  close(): Promise<string>
  never(): Promise<string>
  /** Ends the thread without an answer. */
  end(): Promise<string>
}

const host = () =>
  hostOnThread<Echo>(new URL('../../../support/threads/echo-thread.ts', import.meta.url), { name: 'echo', data: null, youngMb: 16 })

test('each call gets its own answer', async () => {
  const { verbs } = await host()
  expect(await Promise.all([verbs.echo('a'), verbs.fail('b').catch(String), verbs.echo('c')])).toEqual(['a', 'Error: b', 'c'])
  await verbs.close()
})

test('every function of a thread can be called, without a list of their names', async () => {
  const { verbs } = await host()
  expect(Object.keys(verbs)).toEqual(['echo', 'fail', 'never', 'end', 'close'])
  await verbs.close()
})

test('a reply that has arrived is handled without a turn of the event loop', async () => {
  const { verbs, drainReplies } = await host()
  let heard = ''
  const said = verbs.echo('a').then((value) => {
    heard = value
  })
  const untilMs = performance.now() + 60_000
  // Only microtasks run here, and nothing else on this thread.
  while (heard === '' && performance.now() < untilMs) {
    drainReplies()
    await Promise.resolve()
  }
  expect(heard).toBe('a')
  await said
  await verbs.close()
})

test('the last reply of a thread is handled, whether it or the thread’s end arrives first', async () => {
  for (let time = 0; time < 20; time++) {
    const { verbs, died } = await host()
    expect(await verbs.close()).toBe('closed')
    await died
  }
})

test('functions can be called on another channel too; its callers learn when the thread ends', async () => {
  const { port1, port2 } = new MessageChannel()
  const file = new URL('../../../support/threads/echo-thread.ts', import.meta.url)
  const [host, line] = await Promise.all([
    hostOnThread<Echo>(file, { name: 'echo', data: port1, ends: [port1], youngMb: 16 }),
    callThere<Pick<Echo, 'echo' | 'never'>>(port2),
  ])
  expect(await Promise.all([line.verbs.echo('a'), host.verbs.echo('b')])).toEqual(['a', 'b'])
  const failedOutcome = line.verbs.never().catch(String)
  await host.verbs.end().catch(() => undefined)
  expect(await failedOutcome).toBe('Error: the thread on the other end is gone')
})

test('a call to a thread that has ended is an error, not a wait', async () => {
  const { port1, port2 } = new MessageChannel()
  const called = callThere<Pick<Echo, 'echo'>>(port2).catch(String)
  port1.close()
  expect(await called).toBe('Error: the thread on the other end is gone')
})

test('a channel on which requests always wait does not starve another', async () => {
  const AHEAD = 100
  const served: string[] = []
  const [one, other] = [new MessageChannel(), new MessageChannel()]
  const ahead = callThere<{ ask(): Promise<void> }>(one.port1)
  const patient = callThere<{ ask(): Promise<void> }>(other.port1)
  const asked: Promise<void>[] = []
  const ask = async (line: typeof ahead) => void asked.push((await line).verbs.ask())
  serveVerbs(one.port2, {
    async ask() {
      // Send the next request before this one has ended.
      if (served.length < AHEAD) await ask(ahead)
      if (served.length === 0) await ask(patient)
      served.push('ahead')
    },
  })
  serveVerbs(other.port2, { ask: async () => void served.push('patient') })
  const lines = await Promise.all([ahead, patient])
  await ask(ahead)
  while (served.length <= AHEAD) await Promise.all(asked)
  expect(served.indexOf('patient')).toBeLessThan(3)
  for (const { close } of lines) close()
})
