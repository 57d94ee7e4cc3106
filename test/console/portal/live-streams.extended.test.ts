import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { createLiveStreams } from '../../../src/console/portal/live/live-streams.ts'
import { listenInTest } from '../../support/network/listen.ts'

/** One more than the number of streams that may be open. */
const READERS = 101

/** Starts a server that answers nothing by itself. Its streams send no heartbeat. */
async function start({ stamp = () => '', beat = () => {} }: { stamp?: () => string; beat?: (work: () => Promise<void>) => void } = {}) {
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const streams = createLiveStreams({
    look: {
      async stamps(shown) {
        const own = stamp()
        return shown.map(() => own)
      },
    },
    repeat(work) {
      beat(work)
      return { stop: () => {} }
    },
    isOver: () => false,
    log,
  })
  const answers: ServerResponse[] = []
  const server = createServer((_request, answer) => {
    // As Koa does, until a route has answered.
    answer.statusCode = 404
    answers.push(answer)
  })
  const port = await listenInTest(server)
  /** Sends a request and disconnects. Resolves with the server's answer after the server has noticed the disconnect. */
  const askAndLeave = async () => {
    const nth = answers.length
    const asked = request({ port, host: '127.0.0.1' }).on('error', () => undefined)
    asked.end()
    await expect.poll(() => answers.length).toBe(nth + 1)
    const answer = answers[nth] ?? expect.fail('no answer')
    const left = once(answer, 'close')
    asked.destroy()
    await left
    return answer
  }
  /** Sends a request, and resolves with the server's answer and what comes of it. */
  const ask = async () => {
    const nth = answers.length
    const asked = request({ port, host: '127.0.0.1' })
    asked.on('error', () => undefined)
    const received = once(asked, 'response').then(([message]: IncomingMessage[]) => message)
    onTestFinished(() => void asked.destroy())
    asked.end()
    await expect.poll(() => answers.length).toBe(nth + 1)
    return { answer: answers[nth] ?? expect.fail('no answer'), received }
  }
  return { streams, askAndLeave, ask }
}

test('a reader who leaves before the stream begins does not count as a stream', async () => {
  const { streams, askAndLeave } = await start()
  for (let nth = 0; nth < READERS; nth++) {
    const answer = await askAndLeave()
    void streams.stream(answer, { reader: [`app ${nth}`, `session ${nth}`], shown: { kind: 'other' }, isAllowed: () => true })
  }
  await expect.poll(() => streams.hasRoom(['app', 'session']), { timeout: 1000 }).toBe(true)
})

const page = (isAllowed = true) => ({ reader: ['app', 'session'], shown: { kind: 'other' }, isAllowed: () => isAllowed }) as const

test('streams that begin at once, while their data changes at every look, all begin as streams', async () => {
  let looks = 0
  const { streams, ask } = await start({ stamp: () => String(looks++) })
  const asked: Awaited<ReturnType<typeof ask>>[] = []
  for (let nth = 0; nth < 6; nth++) asked.push(await ask())
  for (const { answer } of asked) void streams.stream(answer, page())
  for (const { received } of asked) {
    const message = await received
    expect([message?.statusCode, message?.headers['content-type']]).toEqual([200, 'text/event-stream'])
  }
})

test('a stream that ends before it has begun, because its person lost access, is an empty stream', async () => {
  let ended = Promise.resolve()
  const { streams, ask } = await start({
    beat(work) {
      ended = work()
    },
  })
  const { answer, received } = await ask()
  void streams.stream(answer, page(false))
  await ended
  expect((await received)?.statusCode).toBe(200)
})
