import { startRelay } from './app.ts'
import type { RunningRelay, StartOptions } from './assembly/running-relay.ts'
import type { Config } from './core/config/config.ts'
import type { Log } from './core/flow/ports.ts'
import { SERVER_STORES } from './server/postgres/server-stores.ts'
import { findStoreInUse, untilReachable } from './upkeep/moving/store-in-use.ts'

/** How long the relay that takes over waits for requests that the relay before it is still answering, in milliseconds. */
const LAST_REQUESTS_MS = 1000

/**
 * Runs the relay on the store that is in use. When the store is moved, a second relay starts in this process, on the new store, and takes
 * over. It is ready before the first relay closes its listeners, and listens at the same addresses.
 */
export async function runRelay(
  config: Config,
  log: Log,
  { threads, reloadConfig }: Pick<StartOptions, 'threads' | 'reloadConfig'> = {},
): Promise<RunningRelay> {
  const died = Promise.withResolvers<unknown>()
  let settings = config
  let latest: RunningRelay | null = null
  let handingOver: Promise<unknown> | null = null
  let isStopping = false

  async function start(inUse: Config, options: StartOptions): Promise<RunningRelay> {
    const relay = await startRelay(inUse, log, { ...options, handOver, reloadConfig })
    latest = relay
    void relay.died.then((error) => (relay === latest && handingOver === null ? died.resolve(error) : undefined))
    return relay
  }

  async function handOver(seal: () => Promise<void>): Promise<void> {
    // A relay that has just taken over may be asked to hand over to yet another relay before it is `current`.
    await handingOver
    if (isStopping) throw new Error('The relay is stopping. The store has stayed in use, and the move can be begun again.')
    const taking = takeOver(seal)
    // If no relay takes over, the process must end.
    handingOver = taking.catch((error: unknown) => died.resolve(error))
    const sealed = await taking
    handingOver = null
    if (sealed.status === 'rejected') throw sealed.reason
  }

  /** Rejects only if no relay takes over. */
  async function takeOver(seal: () => Promise<void>): Promise<PromiseSettledResult<void>> {
    const before = current
    await before.endWriting()
    // Continue even if `seal` fails, because the next relay opens whichever store is then in use.
    const [sealed] = await Promise.allSettled([seal()])
    const startNext = async () =>
      await start(await findStoreInUse(settings, log, SERVER_STORES), { stopPredecessor: () => before.stop(LAST_REQUESTS_MS) })
    current = await untilReachable(startNext, { goesOn: () => !isStopping, log, server: SERVER_STORES })
    return sealed
  }

  let current = await start(config, { threads }).catch(async (error: unknown) => await start(await whereMoved(config, log, error), {}))
  settings = listeningLike(config, current)
  const { publicUrl, internalUrl, store } = current
  return {
    publicUrl,
    internalUrl,
    store,
    died: died.promise,
    endWriting: () => current.endWriting(),
    async reload(next, by) {
      await handingOver
      const reloaded = await current.reload(next, by)
      // Settings that need a restart stay as they were.
      settings = { ...next, store: config.store, listen: withTlsOf(settings.listen, next.listen) }
      return reloaded
    },
    async reloadFailed(problems) {
      await handingOver
      await current.reloadFailed(problems)
    },
    async stop(timeoutMs) {
      isStopping = true
      await handingOver
      await current.stop(timeoutMs)
    },
  }
}

/** Finds the store to which the config's store was moved. To look for it would delay every start, so this is called only after a failed one. */
async function whereMoved(config: Config, log: Log, error: unknown): Promise<Config> {
  const inUse = await findStoreInUse(config, log, SERVER_STORES).catch(() => config)
  if (inUse === config) throw error
  return inUse
}

/** A reload changes the certificate files, but not whether a listener has TLS. */
function withTlsOf(before: Config['listen'], after: Config['listen']): Config['listen'] {
  const of = (name: 'public' | 'internal') => ({
    ...before[name],
    tls: before[name].tls === null ? null : (after[name].tls ?? before[name].tls),
  })
  return { public: of('public'), internal: of('internal') }
}

/** If the config lets the system choose a port (0), fills in the chosen port, so that the next relay listens there too. */
function listeningLike(config: Config, { publicUrl, internalUrl }: RunningRelay): Config {
  const at = (name: 'public' | 'internal', url: string) => ({
    ...config.listen[name],
    port: config.listen[name].port === 0 ? Number(new URL(url).port) : config.listen[name].port,
  })
  return { ...config, listen: { public: at('public', publicUrl), internal: at('internal', internalUrl) } }
}
