import { Command } from 'commander'
import { startRelay } from '../app.ts'
import { type Config, ConfigError, loadConfig, notYetSupported } from '../config.ts'
import { createLog } from '../log.ts'
import { fail } from './exit-codes.ts'
import { untilSignalled } from './signals.ts'

/** `parcel-relay serve`: the relay, until a signal stops it. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('run the relay')
    .option('--config <file>', 'the config file', 'config/relay.yaml')
    .action(async ({ config }: { readonly config: string }) => {
      const settings = readConfig(config)
      if (settings !== null) await serve(settings)
    })
}

function readConfig(path: string): Config | null {
  try {
    const config = loadConfig(path)
    const unsupported = notYetSupported(config)
    if (unsupported.length === 0) return config
    fail(`${path}: this version cannot do yet what these settings ask for; take them out: ${unsupported.join(', ')}`)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    fail(`${error.problems.join('\n')}\n${error.message}`)
  }
  return null
}

async function serve(config: Config): Promise<void> {
  const log = createLog(config.log)
  for (const warning of config.warnings) log.warn({}, warning)
  // Before anything is started: a signal that comes meanwhile is not lost, and does not kill.
  const stopped = untilSignalled()
  const relay = await startRelay(config, log)
  log.info({ public: relay.publicUrl, internal: relay.internalUrl }, 'relay ready')
  const ended = await Promise.race([stopped.then((signal) => ({ signal })), relay.died.then((error) => ({ error }))])
  if ('error' in ended) {
    log.error({ err: ended.error }, 'the writer is gone; the relay ends so that it is started anew')
    process.exit(1)
  }
  log.info({ signal: ended.signal }, 'stopping: what is in flight is finished first')
  await relay.stop()
  log.info({}, 'relay stopped')
}
