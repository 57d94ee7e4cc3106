import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { FeedFollower } from '../../../../src/core/flow/delivery/feed-tail.ts'
import { streamEvents } from '../../../../src/core/http/delivery/events.routes.ts'
import { listenInTest } from '../../../support/network/listen.ts'

/** Starts a server that answers every request with a stream of what `next` returns. */
async function serveStream(next: FeedFollower, options: { slowMs?: number; mayRead?: AbortSignal }) {
  const ended = Promise.withResolvers<ServerResponse>()
  const server = createServer((_req, res) => {
    const leaving = new AbortController()
    res.once('close', () => leaving.abort())
    options.mayRead?.addEventListener('abort', () => leaving.abort())
    const ports = { next, isOver: () => false, left: leaving.signal }
    const settings = { heartbeatMs: 20, slowMs: options.slowMs ?? 5000 }
    streamEvents(res, ports, settings).then(
      () => ended.resolve(res),
      () => ended.resolve(res),
    )
  })
  return { port: await listenInTest(server), ended: ended.promise }
}

test('a client that reads nothing is cut off, and only a few pages are read for it', async () => {
  let pages = 0
  const json = JSON.stringify('x'.repeat(1024 * 1024))
  const next = async () => {
    pages += 1
    return { events: [{ sequence: pages, json }], next: pages, ended: false }
  }
  const { port, ended } = await serveStream(next, { slowMs: 200 })
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nHost: relay\r\n\r\n')
  onTestFinished(() => void socket.destroy())
  const res = await ended
  expect(res.destroyed).toBe(true)
  // Each page has 1 MB, so the buffers of the connection hold only some of the pages.
  expect(pages).toBeLessThan(30)
})

test('a stream without events sends heartbeats, and ends when its reader loses access', async () => {
  const quiet = async (waitMs: number) => {
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    return { events: [], next: 0, ended: true }
  }
  const access = new AbortController()
  const { port } = await serveStream(quiet, { mayRead: access.signal })
  const reader = (await fetch(`http://127.0.0.1:${port}/`)).body?.pipeThrough(new TextDecoderStream())
  let text = ''
  for await (const part of reader ?? []) {
    text += part
    if (beats(text) >= 2) access.abort()
  }
  // The loop above ends only when the server ends the stream.
  expect(beats(text)).toBeGreaterThanOrEqual(2)
})

const beats = (text: string) => text.split('\n\n').filter((block) => block === ':').length
