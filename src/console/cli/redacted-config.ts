import type { Config } from '../../core/config/config.ts'
import { isSecret, REDACTED } from '../../core/config/secret.ts'
import { formatDuration } from '../../core/domain/amounts.ts'
import { maskPath } from '../../core/domain/delivery/endpoint-state.ts'

/**
 * Returns the settings in effect in the form of the file, for `config print`, with secrets and password hashes masked. With the secrets put back, the
 * file yields the same settings.
 */
export function redactedConfig(config: Config): Record<string, unknown> {
  const { shutdownTimeoutMs, operator, identifierReuseAfterMs, warnings: _warnings, conflicts: _conflicts, ...rest } = config
  const { store, upstream, poll, serve, apps, endpoints } = rest
  const { byStatusMs, defaultMs, whenPushIsHealthy } = poll.cadence
  const { freeSpaceBytesMin, ...limits } = rest.limits
  const forms = {
    store: store.engine === 'sqlite' ? `sqlite:${store.path}` : maskUrl(store.url.reveal()),
    upstream: { ...upstream, proxy: upstream.proxy === null ? null : maskUrl(upstream.proxy.reveal()) },
    poll: {
      ...poll,
      cadence: { ...withSuffix(byStatusMs), defaultMs, whenPushIsHealthy: `x${whenPushIsHealthy}` },
    },
    serve: { ...serve, refreshOlderThanMs: serve.refreshOlderThanMs ?? 'never' },
    apps: apps.map(({ passwordHash, ...app }) => ({
      ...app,
      passwordHash: passwordHash.length === 1 ? passwordHash[0] : passwordHash,
    })),
    endpoints: endpoints.map(({ ratePerSecond, ...endpoint }) => ({
      ...endpoint,
      rate: ratePerSecond,
      proxy: endpoint.proxy === null ? null : maskUrl(endpoint.proxy.reveal()),
    })),
    limits: { ...limits, freeSpaceMin: freeSpaceBytesMin },
  }
  // The schema moves these to its end. Here they precede what they precede in the documentation.
  const moved: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    upstream: { shutdownTimeoutMs },
    portal: { operator: operator === null ? null : { ...operator, url: maskPath(operator.url.reveal()) } },
    limits: { identifierReuseAfterMs: identifierReuseAfterMs ?? 'never' },
  }
  const members = Object.entries<unknown>({ ...rest, ...forms })
  return asWritten(Object.fromEntries(members.flatMap(([name, form]) => [...Object.entries(moved[name] ?? {}), [name, form] as const])))
}

/** Writes `timeoutMs: 10000` as `timeout: 10s`, and leaves out settings without a value. */
function asWritten(group: object): Record<string, unknown> {
  const members = Object.entries(group).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(
    members.map(([name, value]) => (name.endsWith('Ms') ? [name.slice(0, -2), asDuration(value)] : [name, asValue(value)])),
  )
}

function asValue(value: unknown): unknown {
  if (isSecret(value)) return REDACTED
  if (Array.isArray(value)) return value.map(asValue)
  return typeof value === 'object' && value !== null ? asWritten(value) : value
}

function asDuration(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asDuration)
  return typeof value === 'number' ? formatDuration(value) : value
}

function withSuffix(byStatusMs: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(byStatusMs).map(([status, ms]) => [`${status}Ms`, ms]))
}

/** Masks the user, password and parameters of a URL, because each may be a credential. */
function maskUrl(written: string): string {
  return written.replace(/^([a-z]+:\/\/)[^\s]*@/i, `$1${REDACTED}@`).replace(/\?.*$/, `?${REDACTED}`)
}
