import { type Config, configJsonSchema, loadConfig as load } from '../../../src/core/config/config.ts'
import { loadSections } from '../../../src/wings.ts'

export const SECTIONS = await loadSections()

/** Loads a config as the program does: with the sections of all wings. */
export function loadConfig(path: string, env?: NodeJS.ProcessEnv): Config {
  return load(path, SECTIONS, env)
}

/** The JSON Schema of the config, the sections of all wings included. */
export const JSON_SCHEMA = configJsonSchema(SECTIONS)
