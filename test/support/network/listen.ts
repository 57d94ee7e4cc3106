import { once } from 'node:events'
import type { Server } from 'node:net'
import { onTestFinished } from 'vitest'

/** Makes a server listen on a free port of this machine. Resolves with the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not bound to a port')
  return address.port
}

/** Makes an HTTP server listen until the end of the test, which also closes its connections. */
export async function listenInTest(server: Server & { closeAllConnections(): void }): Promise<number> {
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return await listen(server)
}
