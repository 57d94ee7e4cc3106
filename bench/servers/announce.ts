import type { Server } from 'node:http'

/** Tells the parent process a server's port. */
export function announce(server: Server): void {
  server.on('listening', () => {
    const address = server.address()
    if (address !== null && typeof address === 'object') process.stdout.write(`${JSON.stringify({ port: address.port })}\n`)
  })
}
