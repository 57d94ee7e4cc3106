import { startRelay } from './app.ts'
import type { Config } from './config/config.ts'
import type { Log } from './flow/ports.ts'
import { followMoves } from './wiring/follow-moves.ts'
import type { RunningRelay, StartOptions } from './wiring/running-relay.ts'
import type { Threads } from './wiring/threads.ts'

/** How long requests that are under way may hold up the relay that takes over. */
const LAST_REQUESTS_MS = 1000

/**
 * Runs the relay on the store that is in use. When that is moved, another relay is started in this process and takes over: it is ready before the first one
 * closes its listeners, and listens at the same addresses.
 */
export async function runRelay(config: Config, log: Log, threads?: Threads): Promise<RunningRelay> {
  const died = Promise.withResolvers<unknown>()
  let settings = config
  let current: RunningRelay | null = null
  let handingOver: Promise<void> | null = null

  async function start(inUse: Config, options: StartOptions): Promise<RunningRelay> {
    const relay = await startRelay(inUse, log, { ...options, handOver })
    void relay.died.then((error) => (relay === current && handingOver === null ? died.resolve(error) : undefined))
    return relay
  }

  function handOver(seal: () => Promise<void>): Promise<void> {
    handingOver = takeOver(seal).catch((error: unknown) => {
      died.resolve(error)
      throw error
    })
    return handingOver
  }

  async function takeOver(seal: () => Promise<void>): Promise<void> {
    const before = running()
    await before.endWriting()
    // Whatever comes of it: the one that takes over opens the store that is in use then.
    const sealed = await seal().then(
      () => null,
      (error: unknown) => ({ error }),
    )
    const bound = { public: portOf(before.publicUrl), internal: portOf(before.internalUrl) }
    settings = listeningAt(settings, bound)
    current = await start(await followMoves(settings, log), { endOther: () => before.stop(LAST_REQUESTS_MS) })
    handingOver = null
    if (sealed !== null) throw sealed.error
  }

  function running(): RunningRelay {
    if (current === null) throw new Error('the relay has not started yet')
    return current
  }

  current = await start(config, { threads }).catch(async (error: unknown) => {
    // Only a relay that cannot start looks where its store is: all others start sooner.
    const followed = await followMoves(config, log).catch(() => config)
    if (followed === config) throw error
    return await start(followed, {})
  })
  const { publicUrl, internalUrl } = current
  return {
    publicUrl,
    internalUrl,
    died: died.promise,
    endWriting: () => running().endWriting(),
    async reload(next) {
      await handingOver
      await running().reload(next)
      // What needs a restart stays as it was.
      settings = { ...next, store: config.store, listen: settings.listen }
    },
    async stop(timeoutMs) {
      await handingOver?.catch(() => undefined)
      await running().stop(timeoutMs)
    },
  }
}

/** A config that names the ports that were bound, if it left them open. */
function listeningAt(config: Config, bound: { readonly public: number; readonly internal: number }): Config {
  const at = (name: 'public' | 'internal') => ({ ...config.listen[name], port: config.listen[name].port || bound[name] })
  return { ...config, listen: { public: at('public'), internal: at('internal') } }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
