import { expect, test } from 'vitest'
import { hostOnThread } from '../../src/run/thread.ts'

interface Echo {
  echo(value: string): Promise<string>
  fail(reason: string): Promise<string>
  close(): Promise<string>
}

const host = () => hostOnThread<Echo>(new URL('../support/echo-thread.ts', import.meta.url), null, ['echo', 'fail', 'close'])

test('each call gets its own answer', async () => {
  const { verbs } = await host()
  expect(await Promise.all([verbs.echo('a'), verbs.fail('b').catch(String), verbs.echo('c')])).toEqual(['a', 'Error: b', 'c'])
  await verbs.close()
})

test('an answer that is there is heard without a turn of the event loop', async () => {
  const { verbs, hear } = await host()
  let heard = ''
  const said = verbs.echo('a').then((value) => {
    heard = value
  })
  const untilMs = performance.now() + 10_000
  // Microtasks only: nothing else of this thread's gets a turn.
  while (heard === '' && performance.now() < untilMs) {
    hear()
    await Promise.resolve()
  }
  expect(heard).toBe('a')
  await said
  await verbs.close()
})

test('the last answer of a thread that ends is heard, whichever comes first', async () => {
  for (let time = 0; time < 20; time++) {
    const { verbs, died } = await host()
    expect(await verbs.close()).toBe('closed')
    await died
  }
})
