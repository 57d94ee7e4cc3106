import { parseDuration } from '../domain/amounts.ts'
import { fixedHeaderProblem } from '../domain/delivery/endpoint-keys.ts'
import { valueAt } from './issues.ts'
import { RETENTION_DEFAULTS } from './schema.ts'
import { type Finding, offsetOf, type Path, type Source } from './source.ts'
import { readUrl } from './values.ts'

/**
 * Checks rules that involve several settings. It checks the values as written, even if the schema refuses some, so that all problems are reported
 * together. A value of the wrong type is skipped here, because the schema reports it.
 */
export function crossCheck(values: unknown, source: Source): readonly Finding[] {
  const problems = [
    ...plainHttp(values),
    ...repeated(values, 'apps', 'username'),
    ...repeated(values, 'endpoints', 'name'),
    ...samePort(values),
    ...emptyQuietHours(values),
    ...untrustedHeader(values),
    ...headersForPeople(values),
    ...retentionOrder(values, source),
    ...homelessBackups(values),
  ]
  const found = (severity: Finding['severity'], complaints: readonly Complaint[]) =>
    complaints.map(({ path, message }): Finding => ({ severity, offset: offsetOf(source, path, 'value'), path, message }))
  return [...found('problem', problems), ...found('warning', shortHistory(values))]
}

interface Complaint {
  readonly path: Path
  readonly message: string
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

function repeated(values: unknown, section: string, key: string): readonly Complaint[] {
  const items = valueAt(values, [section])
  if (!Array.isArray(items)) return []
  const names = items.map((item: unknown) => valueAt(item, [key]))
  return names.flatMap((name, index) => {
    const first = names.indexOf(name)
    return typeof name !== 'string' || first === index
      ? []
      : [{ path: [section, index, key], message: `is the same as in ${section}[${first}]: each must be unique` }]
  })
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

/** Complains about a schedule without a folder. No backups would be made, and nobody would notice until one is needed. */
function homelessBackups(values: unknown): readonly Complaint[] {
  const path = ['backup', 'cron']
  const [cron, directory] = [valueAt(values, path) ?? null, valueAt(values, ['backup', 'directory']) ?? null]
  return cron === null || directory !== null ? [] : [{ path, message: 'needs backup.directory, the folder in which backups are made' }]
}
