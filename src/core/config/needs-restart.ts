import type { Settings } from './config.ts'
import { revealAll } from './secret.ts'

/** The settings that a reload applies. */
const LIVE: ReadonlySet<string> = new Set([
  'apps',
  'endpoints',
  'delivery',
  'operator',
  'portal',
  'zone',
  'retention',
  'watchdogs',
  'identifierReuseAfterMs',
  'backup',
  'webhook.sharedKeys',
  'secrets.atRestKeys',
  'upstream.password',
  'upstream.caFile',
  'warnings',
])
/** Sections of which a reload applies only some settings. */
const PARTLY: ReadonlySet<string> = new Set(['webhook', 'upstream', 'secrets'])

/** Returns the names of the settings that have changed since the start and that a reload does not apply. */
export function needsRestart(started: Settings, next: Settings): readonly string[] {
  return changedNames(started, { ...next, listen: withFilesOf(started.listen, next.listen) })
    .flatMap((name) => {
      if (!PARTLY.has(name)) return [name]
      return changedNames(sectionOf(started, name), sectionOf(next, name)).map((key) => `${name}.${key}`)
    })
    .filter((name) => !LIVE.has(name))
    .map((name) => name.replace(/Ms$/, ''))
}

/** Returns the names of the settings that have changed and that a reload applies. Each endpoint and app counts as a setting. No value is returned. */
export function reloadedSettings(before: Settings, next: Settings): readonly string[] {
  return changedNames(before, next)
    .flatMap((name) => {
      if (name === 'endpoints') return changedItems(name, before.endpoints, next.endpoints)
      if (name === 'apps') return changedItems(name, before.apps, next.apps)
      if (name === 'watchdogs') return changedItems(name, before.watchdogs, next.watchdogs)
      if (name === 'delivery' || name === 'retention' || PARTLY.has(name))
        return changedNames(sectionOf(before, name), sectionOf(next, name)).map((key) => `${name}.${key}`)
      return [name]
    })
    .filter((name) => LIVE.has(name) || LIVE.has(name.split('.')[0] ?? ''))
    .filter((name) => name !== 'warnings')
    .map((name) => name.replace(/Ms$/, ''))
}

interface Item {
  readonly name?: string
  readonly username?: string
}

function changedItems(section: string, before: readonly Item[], after: readonly Item[]): readonly string[] {
  const byName = (items: readonly Item[]) => Object.fromEntries(items.map((item) => [item.name ?? item.username ?? '', item]))
  const [was, is] = [byName(before), byName(after)]
  const gone = Object.keys(was).filter((name) => !(name in is))
  return [...new Set([...changedNames(was, is), ...gone])].map((name) => `${section}.${name}`)
}

/** Returns `after` with the certificate files of `before`. A reload reads such files again, so only turning TLS on or off needs a restart. */
function withFilesOf(before: Settings['listen'], after: Settings['listen']): Settings['listen'] {
  const of = (name: 'public' | 'internal') => ({
    ...after[name],
    tls: before[name].tls === null || after[name].tls === null ? after[name].tls : before[name].tls,
  })
  return { public: of('public'), internal: of('internal') }
}

function sectionOf(settings: object, name: string): object {
  const section: unknown = new Map<string, unknown>(Object.entries(settings)).get(name)
  return typeof section === 'object' && section !== null ? section : {}
}

function changedNames(before: object, after: object): readonly string[] {
  const [was, is] = [new Map<string, unknown>(Object.entries(before)), new Map<string, unknown>(Object.entries(after))]
  return [...is.keys()].filter((name) => JSON.stringify(revealAll(was.get(name))) !== JSON.stringify(revealAll(is.get(name))))
}
