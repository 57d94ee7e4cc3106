import { createServer } from 'node:net'

const [, , address] = process.argv
const server = createServer()
server.listen({ host: address, port: 0, backlog: 1 }, () => {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port')
  process.send?.(bound.port, () => {
    // Block the event loop, so that nothing accepts connections any more.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })
})
