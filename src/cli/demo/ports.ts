import { once } from 'node:events'
import { createServer } from 'node:net'

export interface FoundPort {
  readonly port: number
  /** Whether the wanted port was in use. */
  readonly moved: boolean
}

/** Finds a free port: `wanted` if it is free, else any other. `wanted` 0 means any port. */
export async function findPort(host: string, wanted: number): Promise<FoundPort> {
  try {
    return { port: await tryPort(host, wanted), moved: false }
  } catch {
    return { port: await tryPort(host, 0), moved: true }
  }
}

async function tryPort(host: string, wanted: number): Promise<number> {
  const server = createServer().listen(wanted, host)
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('the server is bound to no network address')
  return address.port
}
