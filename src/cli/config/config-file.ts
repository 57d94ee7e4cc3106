import { resolve } from 'node:path'
import { type Config, ConfigError, loadConfig } from '../../config/config.ts'
import { filesNamedIn } from '../../config/named-files.ts'
import { OPENING_MS, tryOpening } from '../../runtime/opening/try-opening.ts'
import { fail } from '../exit-codes.ts'

/** Loads a config file. Null: the file has problems. They are reported, and the command will exit with 1. */
export async function readConfig(path: string): Promise<Config | null> {
  try {
    return await openConfig(path)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    fail(`${error.problems.join('\n')}\n${error.message}`)
    return null
  }
}

/**
 * Loads a config file. Before that, tests whether the file and every file it names can be opened, because a file that never opens would
 * block this process forever. Messages have the whole path, because `npm --prefix` starts the relay in another folder than it was typed in.
 */
export async function openConfig(given: string): Promise<Config> {
  const path = resolve(given)
  await tryOpening([() => [{ what: 'the config file', path }], () => filesNamedIn(path)], { deadlineMs: OPENING_MS })
  return loadConfig(path)
}
