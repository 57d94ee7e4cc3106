import { Command } from 'commander'
import type { RunningRelay } from '../app.ts'
import { type Config, ConfigError, loadConfig } from '../config/config.ts'
import { needsRestart } from '../config/needs-restart.ts'
import type { Log } from '../flow/ports.ts'
import { createLog } from '../ops/log.ts'
import { VERSION } from '../package-files.ts'
import { setHeapFlags } from '../runtime/heap-flags.ts'
import { startThreads } from '../wiring/threads.ts'
import { EXIT, fail } from './exit-codes.ts'
import { untilSignalled } from './signals.ts'

/** `parcel-relay serve`: the relay, until a signal stops it. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('run the relay')
    .option('--config <file>', 'the config file', 'config/relay.yaml')
    .action(async ({ config }: { readonly config: string }) => {
      const settings = readConfig(config)
      if (settings !== null) await serve(settings, config)
    })
}

function readConfig(path: string): Config | null {
  try {
    const config = loadConfig(path)
    if (config.unsupported.length === 0) return config
    fail(config.unsupported.join('\n'))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    fail(`${error.problems.join('\n')}\n${error.message}`)
  }
  return null
}

async function serve(config: Config, path: string): Promise<void> {
  const log = createLog(config.log)
  for (const warning of config.warnings) log.warn({}, warning)
  endOnFault(log)
  // Before anything is started: a signal that comes meanwhile is not lost, and does not kill.
  const stopped = untilSignalled()
  const started = start(config, log)
  reloadOnSignal({ started, config, path, log })
  const relay = await started
  const store = config.store.engine === 'sqlite' ? `sqlite:${config.store.path}` : 'postgres'
  log.info({ public: relay.publicUrl, internal: relay.internalUrl, version: VERSION, config: path, store }, 'relay ready')
  const ended = await Promise.race([stopped.then((signal) => ({ signal })), relay.died.then((error) => ({ error }))])
  if ('error' in ended) {
    log.error({ err: ended.error }, 'one of its threads is gone; the relay ends so that it is started anew')
    process.exit(EXIT.failed)
  }
  log.info({ signal: ended.signal }, 'stopping: what is in flight is finished first')
  await relay.stop()
  log.info({}, 'relay stopped')
}

/**
 * What nobody caught, rejections included: after it nothing this process knows can be trusted, and all it has acknowledged is on the disk. The
 * platform would print the error with whatever hangs on it, secrets too, and leave the log without a word.
 */
function endOnFault(log: Log): void {
  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'a fault of the relay itself; it ends so that it is started anew')
    process.exit(EXIT.failed)
  })
}

/** The threads load their code while this one loads all the rest: one after the other they are most of a start. */
async function start(config: Config, log: Log): Promise<RunningRelay> {
  setHeapFlags()
  const threads = config.store.engine === 'sqlite' ? startThreads(config, config.store.path) : undefined
  const { startRelay } = await import('../app.ts')
  return await startRelay(config, log, threads)
}

/** SIGHUP: the config is read again. One that cannot be used is told of, with every problem, and changes nothing. */
function reloadOnSignal(served: Served): void {
  let last = Promise.resolve()
  process.on('SIGHUP', () => {
    last = last.then(() => reload(served))
  })
}

interface Served {
  readonly started: Promise<RunningRelay>
  /** As it was when the relay started. */
  readonly config: Config
  readonly path: string
  readonly log: Log
}

async function reload({ started, config: before, path, log }: Served): Promise<void> {
  try {
    const config = loadConfig(path)
    for (const warning of config.warnings) log.warn({}, warning)
    if (config.unsupported.length > 0) throw new ConfigError(config.unsupported)
    await (await started).reload(config)
    log.info({}, 'the config was read again: apps, the keys and the password, endpoints, delivery and the operator are as it says now')
    const settings = needsRestart(before, config)
    if (settings.length > 0) log.warn({ settings }, 'what has changed besides is not in effect: these settings need a restart')
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [error instanceof Error ? error.message : String(error)]
    log.error({ problems }, 'the config was read again and cannot be used; nothing has changed')
  }
}
