import { type Config, ConfigError, loadConfig } from '../config/config.ts'
import { fail } from './exit-codes.ts'

/** Loads a config file. Null: it has problems. They have been reported, and the command will exit with 1. */
export function readConfig(path: string): Config | null {
  try {
    return loadConfig(path)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    fail(`${error.problems.join('\n')}\n${error.message}`)
    return null
  }
}
