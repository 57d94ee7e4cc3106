import { z } from 'zod'
import { readRegular } from '../../regular-file.ts'
import { systemCode } from '../domain/errors.ts'
import { systemReason } from '../domain/system-reason.ts'
import { crossCheck } from './cross-checks.ts'
import { findingsOf, maskedSpans, presentFinding, unknownPaths } from './issues.ts'
import { configSchema, storeSchema } from './schema.ts'
import { type Finding, offsetOf, parseSource, type Source, valuesOf } from './source.ts'

type DeepReadonly<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T

/** All settings, after validation. Defaults are filled in, and names end in the unit, such as `timeoutMs`. Secrets are wrapped (`Secret`). */
export type Settings = DeepReadonly<z.output<ReturnType<typeof configSchema>>>

export type Config = Settings & {
  /** Messages about settings that are allowed but unwise. They are logged at every start. Each has its file, line and column; none shows a secret. */
  readonly warnings: readonly string[]
  /** Messages about settings that need another, missing setting. If there are any, `serve` refuses to start. Each has its file, line and column. */
  readonly conflicts: readonly string[]
}

/** Thrown if the config cannot be used. `problems` lists all reasons. Each has a file, line, column and path, and says what to write instead. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]
  /** The names of environment variables that are not set, and the paths of credentials of systemd that are gone. Empty if the config has any other problem. */
  readonly unsetVariables: readonly string[]

  constructor(problems: readonly string[], unsetVariables: readonly string[] = []) {
    super(problems.length === 1 ? 'the config has a problem' : `the config has ${problems.length} problems`)
    this.problems = problems
    this.unsetVariables = unsetVariables
  }
}

/** Reads the config file and the secrets that it names. Throws ConfigError. */
export function loadConfig(path: string, env: NodeJS.ProcessEnv = process.env): Config {
  const { source, values } = readValues(path)
  // Parse twice. The first run reports warnings as issues, because only issues have a path. The second run yields the settings. `jitless`: do not
  // compile the schema, because that takes longer than parsing once.
  const once = { jitless: true }
  const { warning, plain } = schemasOf(env)
  const noted = warning.safeParse(values, once).error?.issues ?? []
  const findings = [...source.findings, ...findingsOf(noted, values, configJsonSchema(), source), ...crossCheck(values, source)]
  const result = plain.safeParse(values, once)
  const masks = maskedSpans(source, unknownPaths(noted))
  const present = (severity: Finding['severity']) => presentAll(path, source, ofSeverity(findings, severity), masks)
  const problems = ofSeverity(findings, 'problem')
  if (!result.success || problems.length > 0) throw new ConfigError(present('problem'), unsetIn(problems))
  const conflicts = presentAll(path, source, conflictsIn(result.data, source), masks)
  return { ...result.data, warnings: present('warning'), conflicts }
}

/** The settings of the store. `endpoints`: those of the file; `sharedKey` is null where it cannot be read. */
export type StoreSettings = DeepReadonly<z.output<ReturnType<typeof storeSchema>>>

/**
 * Reads what works on the store of a stopped relay: systemd takes the credentials of a service away when it stops, and such a command must not ask for secrets that it does not
 * use. Throws ConfigError.
 */
export function loadStoreSettings(path: string, env: NodeJS.ProcessEnv = process.env): StoreSettings {
  const { source, values } = readValues(path)
  const result = storeSchema({ env, warn: false }).safeParse(values, { jitless: true })
  if (result.success) return result.data
  const findings = findingsOf(result.error.issues, values, configJsonSchema(), source)
  throw new ConfigError(presentAll(path, source, findings, maskedSpans(source, [])), unsetIn(findings))
}

function readValues(path: string): { readonly source: Source; readonly values: unknown } {
  const source = parseSource(readText(path))
  if (!source.readable) throw problemsOf(path, source, source.findings)
  const read = valuesOf(source)
  if ('problem' in read) throw problemsOf(path, source, [{ severity: 'problem', offset: 0, path: [], message: read.problem }])
  return { source, values: read.values }
}

type Schema = ReturnType<typeof configSchema>

/** The schemas by environment. They are cached, because building them takes many times as long as checking a file. */
const schemas = new WeakMap<NodeJS.ProcessEnv, { readonly warning: Schema; readonly plain: Schema }>()

function schemasOf(env: NodeJS.ProcessEnv) {
  const known = schemas.get(env) ?? { warning: configSchema({ env, warn: true }), plain: configSchema({ env, warn: false }) }
  schemas.set(env, known)
  return known
}

const jsonSchema = z.toJSONSchema(configSchema({ env: {}, warn: false }), { io: 'input' })

/** Returns the JSON Schema (2020-12) of the config file, for editors. */
export function configJsonSchema(): object {
  return jsonSchema
}

function unsetIn(problems: readonly Finding[]): readonly string[] {
  const variables = problems.flatMap(({ unsetVariable }) => unsetVariable ?? [])
  return variables.length < problems.length ? [] : [...new Set(variables)]
}

function conflictsIn(config: Settings, source: Source): readonly Finding[] {
  if (config.store.engine === 'sqlite' || config.secrets.atRestKeys.length > 0) return []
  const message =
    'names PostgreSQL, which needs secrets.atRestKeys, the same on all replicas: write atRestKeys: [{ env: RELAY_AT_REST_KEY }], with a key from "openssl rand -base64 32"'
  return [{ severity: 'problem', offset: offsetOf(source, ['store'], 'value'), path: ['store'], message }]
}

function readText(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readRegular(path))
  } catch (cause) {
    const code = systemCode(cause)
    const reason = code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'is not UTF-8 text' : `cannot be read (${systemReason(cause)})`
    const remedy =
      code === 'ENOENT'
        ? 'copy config/example.yaml there, or name another with --config FILE'
        : 'name another with --config FILE, or let this user read it'
    throw new ConfigError([`${path}:1:1 the config file ${reason}: ${remedy}`])
  }
}

function problemsOf(path: string, source: Source, findings: readonly Finding[]): ConfigError {
  return new ConfigError(presentAll(path, source, findings, maskedSpans(source, [])))
}

function presentAll(path: string, source: Source, findings: readonly Finding[], masks: ReturnType<typeof maskedSpans>): readonly string[] {
  const inOrder = findings.toSorted((a, b) => a.offset - b.offset)
  return [...new Set(inOrder.map((finding) => presentFinding(path, source, finding, masks)))]
}

function ofSeverity(findings: readonly Finding[], severity: Finding['severity']): readonly Finding[] {
  return findings.filter((finding) => finding.severity === severity)
}
