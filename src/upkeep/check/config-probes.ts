import type { Config } from '../../core/config/config.ts'
import { readCertificates, readNamedFile } from '../../core/config/named-file.ts'
import { formatDuration } from '../../core/domain/amounts.ts'
import type { Clock } from '../../core/flow/ports.ts'
import { readTlsPair } from '../../core/wiring/certificates.ts'
import { type CheckLine, failed, judgeCertificate, judgeOpenFiles, ok, type Verdict, warning } from './check.rules.ts'
import type { Probe } from './manage-check.ts'

/** Makes the probes that check the config and the files that it names, for everything that a start would refuse. */
export function configProbes(config: Config, clock: Pick<Clock, 'now'>): readonly Probe[] {
  return [
    { name: 'config', subject: null, look: async () => settingsOf(config) },
    { name: 'keys', subject: 'webhook.sharedKeys', look: async () => judgeSharedKeys(config) },
    ...listenersOf(config, clock),
    ...authoritiesOf(config),
    ...clientCertificatesOf(config, clock),
    { name: 'open_files', subject: null, look: async () => judgeOpenFiles(openFilesLimit(), config.limits.connections) },
  ]
}

function settingsOf({ conflicts, warnings }: Config): Verdict | readonly CheckLine[] {
  const line = (verdict: Verdict): CheckLine => ({ name: 'config', subject: null, ...verdict })
  const lines = [...conflicts.map(failed), ...warnings.map(warning)].map(line)
  return lines.length > 0 ? lines : ok('It has no mistakes.')
}

/** Warns if one key has two purposes, because such a key has to be replaced in two places at once. */
function judgeSharedKeys({ webhook, endpoints, operator }: Config): Verdict {
  const keys = webhook.sharedKeys.map((key) => key.reveal())
  if (new Set(keys).size < keys.length) return warning('The same key is listed twice.')
  const others = endpoints
    .map(({ name, sharedKey }) => ({ name: `endpoint ${name}`, sharedKey }))
    .concat(operator === null || operator.sharedKey === null ? [] : [{ name: 'operator', sharedKey: operator.sharedKey }])
  const same = others.find(({ sharedKey }) => keys.includes(sharedKey.reveal()))
  if (same !== undefined) return warning(`The carrier and ${same.name} have the same key. Give each its own.`)
  return ok(keys.length === 1 ? 'One key verifies pushes.' : `${keys.length} keys verify pushes.`)
}

function listenersOf({ listen }: Config, clock: Pick<Clock, 'now'>): readonly Probe[] {
  return (['public', 'internal'] as const).flatMap((subject): readonly Probe[] => {
    const { tls } = listen[subject]
    if (tls === null) return []
    return [
      {
        name: 'certificate',
        subject,
        look: async () => judgeCertificate(readTlsPair(`listen.${subject}.tls`, tls).untilMs, clock.now()),
      },
    ]
  })
}

function authoritiesOf({ upstream, endpoints }: Config): readonly Probe[] {
  const named = [{ subject: 'upstream.caFile', file: upstream.caFile }].concat(
    endpoints.map(({ name, caFile }) => ({ subject: `caFile of endpoint ${name}`, file: caFile })),
  )
  return named.flatMap(({ subject, file }): readonly Probe[] => {
    if (file === null) return []
    const look = async () => {
      readCertificates(subject, file)
      return ok('Its certificates can be read.')
    }
    return [{ name: 'certificate', subject, look }]
  })
}

function clientCertificatesOf({ endpoints }: Config, clock: Pick<Clock, 'now'>): readonly Probe[] {
  return endpoints.flatMap(({ name, clientCert }): readonly Probe[] => {
    if (clientCert === null) return []
    const subject = `clientCert of endpoint ${name}`
    return [{ name: 'certificate', subject, look: async () => judgeCertificate(readTlsPair(subject, clientCert).untilMs, clock.now()) }]
  })
}

/** Reads how many files this process may open; null: the system is not Linux, and does not tell. */
export function openFilesLimit(): number | null {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readNamedFile('limits', '/proc/self/limits').toString()) ?? []
    return limit === undefined ? null : Number(limit)
  } catch {
    return null
  }
}

/** Lists in a text how long each kind of data is kept. */
export function keptFor({ retention }: Pick<Config, 'retention'>): string {
  const kept = Object.entries(retention).map(([name, ms]) => `${name.replace(/Ms$/, '')} ${formatDuration(ms)}`)
  return kept.join(', ')
}
