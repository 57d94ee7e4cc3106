import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { createLiveStreams } from '../../../src/console/portal/live/live-streams.ts'
import { listenInTest } from '../../support/network/listen.ts'

/** One more than the number of streams that may be open. */
const READERS = 101

/** Starts a server that answers nothing by itself. Its streams send no heartbeat. */
async function start() {
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const streams = createLiveStreams({
    look: { stamps: async (shown) => shown.map(() => '') },
    repeat: () => ({ stop: () => {} }),
    isOver: () => false,
    log,
  })
  const answers: ServerResponse[] = []
  const server = createServer((_request, answer) => void answers.push(answer))
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
  return { streams, askAndLeave }
}

test('a reader who leaves before the stream begins does not count as a stream', async () => {
  const { streams, askAndLeave } = await start()
  for (let nth = 0; nth < READERS; nth++) {
    const answer = await askAndLeave()
    void streams.stream(answer, { reader: [`app ${nth}`, `session ${nth}`], shown: { kind: 'other' }, isAllowed: () => true })
  }
  await expect.poll(() => streams.hasRoom(['app', 'session']), { timeout: 1000 }).toBe(true)
})
