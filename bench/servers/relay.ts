import { type RelayConfig, SHOP, writeRelayConfig } from './relay-config.ts'
import { type Server, spawnNode } from './server.ts'

/** Flags and environment as in the image and `npm start`: less memory and a faster start. */
export const LAUNCH = { flags: ['--min-semi-space-size=8', '--max-semi-space-size=8'], env: { MALLOC_ARENA_MAX: '2' } } as const

/** The measured relay as shipped: compiled, in its own process. */
export interface RelayServer extends Server {
  /** Port for reads; `port` is for pushes. */
  readonly internalPort: number
  readonly internalUrl: string
  readonly storePath: string
  logIn(): Promise<string>
  /** Sends a GET to the internal listener. */
  ask(path: string, token: string): Promise<Response>
}

/** `entry`: the compiled `main.js`. */
export async function startRelay(entry: string, folder: string, config: RelayConfig): Promise<RelayServer> {
  const args = [...LAUNCH.flags, entry, 'serve', '--config', writeRelayConfig(folder, config)]
  const { said, ...server } = await spawnNode(args, ({ msg }) => msg === 'relay ready', LAUNCH.env)
  const internalUrl = String(said.internal)
  return {
    ...server,
    port: portOf(said.public),
    internalPort: portOf(internalUrl),
    internalUrl,
    storePath: config.storePath,
    async logIn() {
      const response = await fetch(`${internalUrl}/auth/token`, {
        method: 'POST',
        body: JSON.stringify(SHOP),
        headers: { 'content-type': 'application/json' },
      })
      const answer: unknown = await response.json()
      if (typeof answer !== 'object' || answer === null || !('token' in answer)) throw new Error(`no token: ${response.status}`)
      return String(answer.token)
    },
    ask: (path, token) => fetch(`${internalUrl}${path}`, { headers: { authorization: `Bearer ${token}` } }),
  }
}

function portOf(url: unknown): number {
  return Number(new URL(String(url)).port)
}
