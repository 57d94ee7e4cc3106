import { z } from 'zod'
import { readRegular } from '../../regular-file.ts'
import { parseDuration } from '../domain/amounts.ts'
import { CLAIMS_PER_ATTEMPT, CLAIMS_PER_ATTEMPT_ON_SERVER } from '../domain/delivery/delivery.ts'
import { fixedHeaderProblem } from '../domain/delivery/endpoint-keys.ts'
import { systemCode } from '../domain/errors.ts'
import { systemReason } from '../domain/system-reason.ts'
import { configSchema, RETENTION_DEFAULTS, type Section, storeSchema } from './schema.ts'
import {
  type Complaint,
  type Finding,
  findingsOf,
  maskedSpans,
  offsetOf,
  parseSource,
  presentFinding,
  repeated,
  type Source,
  unknownPaths,
  valueAt,
  valuesOf,
} from './source.ts'
import { readUrl } from './values.ts'

export type DeepReadonly<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T

/**
 * All settings, after validation. Defaults are filled in, and names end in the unit, such as `timeoutMs`. Secrets are wrapped (`Secret`). Wings add
 * theirs, which are absent if the wing has no line in the table of wings.
 */
export interface Settings extends DeepReadonly<z.output<ReturnType<typeof configSchema>>> {}

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

/** Reads the config file and the secrets that it names. `sections`: those of wings. Throws ConfigError. */
export function loadConfig(path: string, sections: readonly Section[], env: NodeJS.ProcessEnv = process.env): Config {
  const { source, values } = readValues(path)
  // Parse twice. The first run reports warnings as issues, because only issues have a path. The second run yields the settings. `jitless`: do not
  // compile the schema, because that takes longer than parsing once.
  const once = { jitless: true }
  const { warning, plain } = schemasOf(sections, env)
  const noted = warning.safeParse(values, once).error?.issues ?? []
  const noticed = findingsOf(noted, values, () => configJsonSchema(sections), source)
  const findings = [...source.findings, ...noticed, ...crossCheck(values, source, sections)]
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
  const findings = findingsOf(result.error.issues, values, () => configJsonSchema([]), source)
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
const schemas = new WeakMap<
  NodeJS.ProcessEnv,
  { readonly sections: readonly Section[]; readonly warning: Schema; readonly plain: Schema }
>()

function schemasOf(sections: readonly Section[], env: NodeJS.ProcessEnv) {
  const known = schemas.get(env)
  if (known?.sections === sections) return known
  const made = { sections, warning: configSchema({ env, warn: true }, sections), plain: configSchema({ env, warn: false }, sections) }
  schemas.set(env, made)
  return made
}

/** Returns the JSON Schema (2020-12) of the config file, for editors. */
export function configJsonSchema(sections: readonly Section[]): object {
  return z.toJSONSchema(configSchema({ env: {}, warn: false }, sections), { io: 'input' })
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

/**
 * Checks rules that involve several settings. It checks the values as written, even if the schema refuses some, so that all problems are reported
 * together. A value of the wrong type is skipped here, because the schema reports it.
 */
function crossCheck(values: unknown, source: Source, sections: readonly Section[]): readonly Finding[] {
  const problems = [
    ...plainHttp(values),
    ...repeated(values, 'apps', 'username'),
    ...repeated(values, 'endpoints', 'name'),
    ...samePort(values),
    ...emptyQuietHours(values),
    ...untrustedHeader(values),
    ...headersForPeople(values),
    ...retentionOrder(values, source),
    ...sections.flatMap(({ check }) => check?.(values) ?? []),
  ]
  const found = (severity: Finding['severity'], complaints: readonly Complaint[]) =>
    complaints.map(({ path, message }): Finding => ({ severity, offset: offsetOf(source, path, 'value'), path, message }))
  return [...found('problem', problems), ...found('warning', shortHistory(values))]
}

/** Complains about plain http to the carrier, because the password and every token would cross the network unencrypted. */
function plainHttp(values: unknown): readonly Complaint[] {
  if (valueAt(values, ['upstream', 'allowHttp']) === true) return []
  return ['baseUrl', 'authUrl'].flatMap((key) => {
    const path = ['upstream', key]
    const written = valueAt(values, path)
    const url = typeof written === 'string' ? readUrl(written) : null
    if (url?.protocol !== 'http:' || isLoopback(url.hostname)) return []
    return [
      { path, message: 'must be https: plain http sends the password and every token unencrypted (upstream.allowHttp: true allows it)' },
    ]
  })
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || /^127\.\d+\.\d+\.\d+$/.test(hostname) || hostname === '[::1]'
}

function samePort(values: unknown): readonly Complaint[] {
  const [open, internal] = ['public', 'internal'].map((name) => valueAt(values, ['listen', name]))
  const port = valueAt(internal, ['port']) ?? 8081
  if (port === 0 || port !== (valueAt(open, ['port']) ?? 8080)) return []
  const [openHost, host] = [valueAt(open, ['host']) ?? '0.0.0.0', valueAt(internal, ['host']) ?? '127.0.0.1']
  const overlap = openHost === host || [openHost, host].some((address) => address === '0.0.0.0' || address === '::')
  return overlap ? [{ path: ['listen', 'internal', 'port'], message: 'is also the port of listen.public: choose another' }] : []
}

/** Complains about `portal.trustedHeader` without trusted proxies. Anybody could send the header, and so log in as anyone. */
function untrustedHeader(values: unknown): readonly Complaint[] {
  const path = ['portal', 'trustedHeader']
  const proxies = valueAt(values, ['listen', 'internal', 'trustProxy'])
  if (typeof valueAt(values, path) !== 'string' || (Array.isArray(proxies) && proxies.length > 0)) return []
  return [{ path, message: 'needs listen.internal.trustProxy: it is believed only from those proxies' }]
}

/** Complains if an endpoint's fixed headers contain `portal.trustedHeader`. If the endpoint is a relay, its portal could let the request log in. */
function headersForPeople(values: unknown): readonly Complaint[] {
  const [trusted, endpoints] = [valueAt(values, ['portal', 'trustedHeader']), valueAt(values, ['endpoints'])]
  if (typeof trusted !== 'string' || !Array.isArray(endpoints)) return []
  return endpoints.flatMap((endpoint: unknown, index) => {
    const headers = valueAt(endpoint, ['headers'])
    const names = typeof headers === 'object' && headers !== null ? Object.keys(headers) : []
    return names
      .filter((name) => name.toLowerCase() === trusted.toLowerCase())
      .map((name) => ({ path: ['endpoints', index, 'headers', name], message: fixedHeaderProblem(name, trusted) ?? '' }))
  })
}

function emptyQuietHours(values: unknown): readonly Complaint[] {
  const path = ['poll', 'quietHours', 'to']
  const to = valueAt(values, path)
  const from = valueAt(values, ['poll', 'quietHours', 'from'])
  return typeof to === 'string' && to === from
    ? [{ path, message: 'is the same as from, so the quiet hours are empty: change one, or remove quietHours' }]
    : []
}

/**
 * Complains about retentions in the wrong order. A delivery refers to its event in the feed, so events must be kept at least as long as deliveries.
 * An event refers to the bytes of its push, so bytes must be kept at least as long as events.
 */
function retentionOrder(values: unknown, source: Source): readonly Complaint[] {
  const kept = (name: 'raw' | 'feed' | 'deliveries') => {
    const path = ['retention', name]
    const written = valueAt(values, path)
    const text = typeof written === 'string' ? written : written === undefined ? RETENTION_DEFAULTS[name] : ''
    const place = written === undefined ? 'by default' : `line ${source.lines.linePos(offsetOf(source, path, 'value')).line}`
    return { name, path, text, place, isWritten: written !== undefined, ms: parseDuration(text) }
  }
  const [raw, feed, deliveries] = [kept('raw'), kept('feed'), kept('deliveries')]
  const pairs = [
    { longer: raw, shorter: feed },
    { longer: feed, shorter: deliveries },
  ]
  return pairs.flatMap(({ longer, shorter }) => {
    if (longer.ms === null || shorter.ms === null || longer.ms >= shorter.ms) return []
    const at = longer.isWritten ? { ...longer, other: shorter, relation: 'shorter' } : { ...shorter, other: longer, relation: 'longer' }
    const other = `retention.${at.other.name}, which is ${at.other.text} (${at.other.place})`
    const message = `is ${at.relation} than ${other}: raw must be at least feed, and feed at least deliveries`
    return [{ path: at.path, message }]
  })
}

/** A shorter time removes parcels that are still on their way. */
const HISTORY_MS_MIN = 24 * 60 * 60 * 1000

/** Warns if parcels go so early that events which an endpoint still waits for, or pushes in quarantine, outlive them. */
function shortHistory(values: unknown): readonly Complaint[] {
  const path = ['retention', 'history']
  const [history, held] = (['history', 'held'] as const).map((name) => {
    const written = valueAt(values, ['retention', name])
    return { text: typeof written === 'string' ? written : RETENTION_DEFAULTS[name], isWritten: written !== undefined }
  })
  const [historyMs, heldMs] = [parseDuration(history?.text ?? ''), parseDuration(held?.text ?? '')]
  if (historyMs === null || heldMs === null || history?.isWritten !== true) return []
  if (historyMs < HISTORY_MS_MIN)
    return [{ path, message: 'is less than a day: parcels that are still on their way are removed, with everything known of them' }]
  const message = `is shorter than retention.held (${held?.text}): parcels go while events and quarantined pushes of them may still wait`
  return historyMs < heldMs ? [{ path, message }] : []
}

/** The default of `operator.failingAfter`. It also applies without `operator`, because an endpoint's state is stored anyway. */
const FAILING_AFTER_MS = 15 * 60_000

/** Returns the settings by which the store claims and settles deliveries. */
export function deliveryRules({ delivery, store, operator }: Pick<Settings, 'delivery' | 'store' | 'operator'>) {
  const { scheduleMs, jitter, perEndpoint } = delivery
  const claimsPerAttempt = store.engine === 'sqlite' ? CLAIMS_PER_ATTEMPT : CLAIMS_PER_ATTEMPT_ON_SERVER
  const failingAfterMs = operator?.failingAfterMs ?? FAILING_AFTER_MS
  return { policy: { scheduleMs, jitter }, perEndpoint, claimsPerAttempt, failingAfterMs }
}
