import { resolve } from 'node:path'
import { type Config, ConfigError, loadConfig, loadStoreSettings, type StoreSettings } from '../../../core/config/config.ts'
import { readCertificates } from '../../../core/config/named-file.ts'
import { filesNamedIn } from '../../../core/config/named-files.ts'
import { OPENING_MS, tryOpening } from '../../../core/runtime/opening/try-opening.ts'
import { fail } from '../exit-codes.ts'
import type { ClientOptions } from './ask-relay.ts'

/** Loads a config file. If it has problems, reports them, sets the exit code to 1 and resolves with null. */
export const readConfig = (path: string): Promise<Config | null> => orReport(() => openConfig(path))

/** As `readConfig`, for what works on the store of a stopped relay. */
export const readStoreSettings = (path: string): Promise<StoreSettings | null> => orReport(() => open(path, loadStoreSettings))

async function orReport<Read>(read: () => Promise<Read>): Promise<Read | null> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    fail(`${error.problems.join('\n')}\n${error.message}`)
    return null
  }
}

/**
 * Loads a config file. First tests that the file and every file that it names can be opened, because opening a pipe or a dead network drive would
 * block this process forever. Messages have the absolute path, because with `npm --prefix` the relay runs in another folder than the shell.
 */
export const openConfig = (path: string): Promise<Config> => open(path, loadConfig)

async function open<Read>(given: string, load: (path: string) => Read): Promise<Read> {
  const path = resolve(given)
  await tryOpening([() => [{ what: 'the config file', path }], () => filesNamedIn(path)], { deadlineMs: OPENING_MS })
  return load(path)
}

/** How this machine reaches a relay with this config: its address, and the certificate that it shows. */
export function addressOf(config: Config): Pick<ClientOptions, 'url' | 'pinned'> {
  return { url: internalUrl(config), pinned: ownCertificate(config) }
}

function internalUrl({ listen: { internal } }: Config): string {
  const host = internal.host === '0.0.0.0' ? '127.0.0.1' : internal.host === '::' ? '::1' : internal.host
  return `${internal.tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${internal.port}`
}

/** Reads the certificate that the relay shows to this machine. It may be for another host name. Undefined: no TLS, or no readable file. */
function ownCertificate({ listen: { internal } }: Config): string | undefined {
  try {
    const chain = internal.tls === null ? '' : readCertificates('listen.internal.tls.certFile', internal.tls.certFile)
    // The first certificate of a chain is the relay's own. Do not trust the others: that would trust every certificate that they sign.
    return /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/.exec(chain)?.[0]
  } catch {
    return undefined
  }
}
