import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Config, ConfigError } from '../../../src/core/config/config.ts'
import { loadConfig } from '../../support/relay/load-config.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

export const HASH = '$argon2id$v=19$m=19456,t=2,p=1$QSxfWZSD5ry4M1ntAH8yGQ$zdz3qX8bGwAYEUcHAOfeIYezNJJuU/fl8DdaFQEWTWg'

/** A value that no output may contain. */
export const CANARY = 'canary-0123456789-canary'

export const minimal = `webhook: { sharedKeys: [${CANARY}] }
upstream: { baseUrl: https://carrier.example, username: acme, password: ${CANARY} }
`

/** One object for all tests, because the schema is built once for each environment object. */
const NO_ENVIRONMENT = {}

export function fileOf(text: string | Uint8Array, name = 'relay.yaml'): string {
  const path = join(temporaryFolder(), name)
  writeFileSync(path, text)
  return path
}

export function load(text: string, env: NodeJS.ProcessEnv = NO_ENVIRONMENT): Config {
  return loadConfig(fileOf(text), env)
}

/** Returns the problems of a config, without the temporary folder in their paths. The list is empty if the config loads. */
export function problemsOf(text: string, env: NodeJS.ProcessEnv = NO_ENVIRONMENT): readonly string[] {
  const path = fileOf(text)
  try {
    loadConfig(path, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.replaceAll(`${dirname(path)}/`, ''))
    throw error
  }
  return []
}

/** Returns the first line of each problem, without the excerpt from the file. */
export function headlinesOf(text: string, env: NodeJS.ProcessEnv = NO_ENVIRONMENT): readonly string[] {
  return problemsOf(text, env).map((problem) => problem.split('\n', 1)[0] ?? '')
}

export function withLines(...lines: readonly string[]): string {
  return `${minimal}${lines.join('\n')}\n`
}
