import { join } from 'node:path'
import { startRelay } from '../../app.ts'
import type { Config } from '../../core/config/config.ts'
import type { Log } from '../../core/flow/ports.ts'
import type { DemoRelays } from './start-replicas.ts'

export interface SoleRelayOptions {
  readonly folder: string
  /** Called with the relay's warnings and errors. */
  readonly onTrouble: (message: string) => void
}

/** Runs one relay in this process, with a SQLite file in `folder` as its store. */
export async function startSoleRelay(config: Config, { folder, onTrouble }: SoleRelayOptions): Promise<DemoRelays> {
  const path = join(folder, 'demo.db')
  const relay = await startRelay({ ...config, store: { engine: 'sqlite', path } }, troubleOnly(onTrouble))
  let hasDied = false
  void relay.died.then(() => {
    hasDied = true
  })
  return {
    replicas: [{ ...relay, name: 'relay', pid: process.pid, isRunning: () => !hasDied }],
    webhookUrl: `${relay.publicUrl}${config.webhook.path}`,
    store: path,
    stop: relay.stop,
  }
}

function troubleOnly(onTrouble: (message: string) => void): Log {
  const tell = (_fields: object, message: string) => onTrouble(`relay: ${message}`)
  const ignore = () => undefined
  return { debug: ignore, info: ignore, warn: tell, error: tell }
}
