import { type RelayConfig, SHOP, writeRelayConfig } from './relay-config.ts'
import { type Server, spawnNode } from './server.ts'

/** The relay under measure, as it is shipped: compiled, a process of its own. */
export interface RelayServer extends Server {
  /** Where reads go; `port` is where pushes go. */
  readonly internalPort: number
  readonly storePath: string
  logIn(): Promise<string>
  /** GET on the internal listener. */
  ask(path: string, token: string): Promise<Response>
}

/** `entry`: the compiled `main.js`. More arguments for Node itself may come first. */
export async function startRelay(
  entry: string,
  folder: string,
  config: RelayConfig,
  nodeArgs: readonly string[] = [],
): Promise<RelayServer> {
  const args = [...nodeArgs, entry, 'serve', '--config', writeRelayConfig(folder, config)]
  const { said, ...server } = await spawnNode(args, ({ msg }) => msg === 'relay ready')
  const internalUrl = String(said.internal)
  return {
    ...server,
    port: portOf(said.public),
    internalPort: portOf(internalUrl),
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
