import { startThreads } from './assembly/hosting/threads.ts'
import type { RunningRelay } from './assembly/running-relay.ts'
import { openConfig, readConfig } from './console/cli/asking/config-file.ts'
import { EXIT, fail, untilSignalled } from './console/cli/exit-codes.ts'
import { type Config, ConfigError } from './core/config/config.ts'
import type { Section } from './core/config/schema.ts'
import type { Actor } from './core/domain/admin/operator-action.ts'
import { AppError, isStoreUnavailable } from './core/domain/errors.ts'
import { describeFailure } from './core/domain/system-reason.ts'
import type { Log, ReloadConfig, Reloaded } from './core/flow/ports.ts'
import { createLog } from './core/ops/log.ts'
import { setHeapFlags } from './core/runtime/heap-flags.ts'
import { endProcess } from './core/runtime/threads/thread.ts'
import { VERSION } from './package-files.ts'

/** Runs the relay of a config file until a signal stops it or it cannot go on. `sections`: those of wings. */
export async function serve(path: string, sections: readonly Section[]): Promise<void> {
  const config = await readServable(path, sections)
  if (config !== null) await run(config, { path, sections })
}

async function readServable(path: string, sections: readonly Section[]): Promise<Config | null> {
  const config = await readConfig(path, sections)
  if (config === null || config.conflicts.length === 0) return config
  fail(config.conflicts.join('\n'))
  return null
}

async function run(config: Config, { path, sections }: Pick<Served, 'path' | 'sections'>): Promise<void> {
  const log = createLog(config.log)
  for (const warning of config.warnings) log.warn({}, warning)
  endOnFault(log)
  // Register the handler before the start, so that a signal during the start also stops the relay in an orderly way.
  const stopped = untilSignalled(() => void endProcess(EXIT.failed))
  void stopped.then(() => endIfLate(log, config.shutdownTimeoutMs + STOPPING_MS, 'the relay did not stop in time'))
  const ready = Promise.withResolvers<RunningRelay>()
  const reload = createReload({ started: ready.promise, path, sections, log })
  reloadOnSignal(reload)
  ready.resolve(start(config, log, reload))
  const relay = await ready.promise
  const { publicUrl, internalUrl, store } = relay
  log.info({ public: publicUrl, internal: internalUrl, version: VERSION, config: path, store }, 'relay ready')
  const ended = await Promise.race([stopped.then((signal) => ({ signal })), relay.died.then((error) => ({ error }))])
  if ('error' in ended) {
    log.error({ err: ended.error }, 'the relay cannot go on; it exits so that its supervisor restarts it')
    await endProcess(EXIT.failed)
    return
  }
  log.info({ signal: ended.signal }, 'stopping: finishing what is in flight')
  await relay.stop()
  log.info({}, 'relay stopped')
  endIfLate(log, ENDING_MS, 'the relay has stopped')
}

/** How long a stop may take after `shutdownTimeout`. Requests end within `shutdownTimeout`; then the store must finish its writes. */
const STOPPING_MS = 10_000
/** How long the process may take to end by itself after the relay has stopped. */
const ENDING_MS = 2000

/** Ends the process if it still runs after `afterMs`, because then something in it hangs. */
function endIfLate(log: Log, afterMs: number, what: string): void {
  const end = () => {
    log.error({}, `${what}; something in the process still hangs, so the process ends now`)
    void endProcess(EXIT.failed)
  }
  setTimeout(end, afterMs).unref()
}

/**
 * Ends the process on an uncaught error or rejection, because its state in memory may be wrong. Nothing is lost: everything acknowledged is on disk.
 * Without this handler, Node would print the error with all its members, secrets included, and log nothing.
 */
function endOnFault(log: Log): void {
  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'internal fault; the relay exits so that its supervisor restarts it')
    process.exit(EXIT.failed)
  })
}

/** Starts the threads, then imports the rest of the code. Imports take most of the time of a start, so all threads import at the same time. */
async function start(config: Config, log: Log, reloadConfig: ReloadConfig): Promise<RunningRelay> {
  setHeapFlags()
  const threads = config.store.engine === 'sqlite' ? startThreads(config, config.store.path) : undefined
  const { runRelay } = await import('./successor.ts')
  return await runRelay(config, log, { threads, reloadConfig })
}

/** Makes SIGHUP reload the config. If the config has problems, all of them are logged and nothing changes. */
function reloadOnSignal(reloadConfig: ReloadConfig): void {
  const by: Actor = { kind: 'signal', name: 'SIGHUP', address: null }
  process.on('SIGHUP', () => {
    // The reload has logged its problems already.
    reloadConfig(by).catch(() => undefined)
  })
}

/** Only one reload runs at a time, whether a signal or the API asks for it. */
function createReload(served: Served): ReloadConfig {
  let last: Promise<unknown> = Promise.resolve()
  return async (by) => {
    const reloading = last.then(() => reload(served, by))
    last = reloading.catch(() => undefined)
    return await reloading
  }
}

const PROBLEMS_SHOWN = 100

interface Served {
  readonly started: Promise<RunningRelay>
  readonly path: string
  readonly sections: readonly Section[]
  readonly log: Log
}

async function reload({ started, path, sections, log }: Served, by: Actor): Promise<Reloaded> {
  try {
    const config = await openConfig(path, sections)
    for (const warning of config.warnings) log.warn({}, warning)
    if (config.conflicts.length > 0) throw new ConfigError(config.conflicts)
    const reloaded = await (await started).reload(config, by)
    const { changed, needsRestart, problems } = reloaded
    log.info(
      { changed, ...(problems.length === 0 ? {} : { problems }) },
      changed.length === 0
        ? 'config reloaded: no setting that a reload applies has changed'
        : 'config reloaded: the changed settings are in effect',
    )
    if (needsRestart.length > 0) log.warn({ settings: needsRestart }, 'other settings have changed and need a restart to take effect')
    return reloaded
  } catch (error) {
    const isStore = isStoreUnavailable(error)
    const failure = isStore
      ? `the store took nothing, so the config may be right: ${describeFailure(error)}. Reload again when the store works`
      : describeFailure(error)
    const problems = error instanceof ConfigError ? error.problems : [failure]
    log.error(
      { problems },
      isStore ? 'the config was not reloaded; nothing has changed' : 'the reloaded config has problems; nothing has changed',
    )
    await started
      .then((relay) => relay.reloadFailed(problems))
      .catch((err: unknown) => log.warn({ err }, 'the failed reload cannot be recorded'))
    if (isStore || error instanceof AppError) throw error
    const facts = { problems: problems.slice(0, PROBLEMS_SHOWN) }
    throw new AppError('not_reloadable', 'The config has problems; nothing has changed.', { cause: error, facts })
  }
}
