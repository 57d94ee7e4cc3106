import { refuseLosingKeys } from '../console/secrets/manage-secrets.ts'
import type { Config, Settings } from '../core/config/config.ts'
import { revealAll } from '../core/config/secret.ts'
import { signingKeysOf } from '../core/config/signing-keys.ts'
import type { Actor, OperatorAction } from '../core/domain/admin/operator-action.ts'
import type { Reloaded } from '../core/flow/ports.ts'
import { createVault } from '../core/ops/vault.ts'
import type { Capabilities } from '../core/wiring/capabilities.ts'
import { renewAuthority } from '../core/wiring/carrier.ts'
import type { Listening } from '../core/wiring/listen.ts'
import { appsOf } from '../core/wiring/open-history.ts'
import type { Relay } from '../core/wiring/relay.ts'
import { REPLICA } from '../core/wiring/replica-name.ts'
import type { RunningRelay } from './running-relay.ts'

type Parts = Pick<Relay, 'atRest' | 'reads' | 'write' | 'clock' | 'unstored' | 'carrier' | 'log' | 'receiver'>

interface ReloadPorts extends Pick<Relay, 'authenticate' | 'sessions' | 'certificates' | 'tombstoneKey'>, Pick<Capabilities, 'delivery'> {
  readonly reloadBackups: (next: Config) => Promise<void>
  readonly publicServer: Pick<Listening, 'tlsUntilMs'>
  readonly internalServer: Pick<Listening, 'tlsUntilMs' | 'renewTls'>
  /** Called with the new config when it is in effect. */
  readonly applied: (config: Config) => void
  /** Called when a reload has ended. `problems`: why it failed, or what of it could not be used; empty: nothing. */
  readonly ended: (problems: readonly string[]) => void
}

/** The most problems of a config file that the operator event lists. */
const PROBLEMS_TOLD = 20

const SIGNAL: Actor = { kind: 'signal', name: 'SIGHUP', address: null }

export function createReload(config: Config, parts: Parts, ports: ReloadPorts): Pick<RunningRelay, 'reload' | 'reloadFailed'> {
  const { carrier, log, write, unstored, clock } = parts
  const { verbs: receiver } = parts.receiver
  const { delivery, authenticate, sessions, certificates, tombstoneKey, publicServer, internalServer, applied } = ports
  let current = config
  const replaceApps = (next: Config) => {
    for (const side of [authenticate, sessions]) side.replaceApps(appsOf(next))
  }
  certificates.inUse('public', publicServer.tlsUntilMs)
  certificates.inUse('internal', internalServer.tlsUntilMs)
  certificates.takeClients(delivery.clientCertificates)
  return {
    async reload(next, by = SIGNAL) {
      // Replace the apps first, so that a removed app loses its access at once, even if the store is slow.
      replaceApps(next)
      try {
        await refuseLosingKeys(
          { reads: parts.reads, tombstoneKey },
          { before: createVault(parts.atRest.keys), after: createVault(parts.atRest.keysOf(next)) },
        )
        await delivery.reload(next)
        await write.adjustRetention(next.retention)
        await write.adjustWatchdogs({ rules: next.watchdogs ?? [], zone: next.zone })
        await write.adjustErasure({ identifierReuseAfterMs: next.identifierReuseAfterMs })
      } catch (error) {
        replaceApps(current)
        throw error
      }
      const changed = reloadedSettings(current, next)
      const hasNewPassword = next.upstream.password.reveal() !== current.upstream.password.reveal()
      parts.atRest.replace(next)
      current = next
      applied(next)
      await ports.reloadBackups(next)
      // Start a login in the background. The carrier's state shows whether it accepts the password.
      if (hasNewPassword) carrier.logIn().catch((err: unknown) => log.debug({ err }, 'the login after a reload failed'))
      await receiver.replaceKeys(signingKeysOf(next))
      const problems = [
        ...renewAuthority(next, parts),
        ...(await certificates.renew(next, { public: receiver.renewTls, internal: internalServer.renewTls })),
      ]
      ports.ended(problems)
      const reloaded = { changed, needsRestart: needsRestart(config, next), problems }
      await tellReloaded(parts, reloaded, by)
      return reloaded
    },
    async reloadFailed(problems) {
      ports.ended(problems.slice(0, PROBLEMS_TOLD))
      const event = { event: 'reload_failed', replica: REPLICA.name, problems: problems.slice(0, PROBLEMS_TOLD) } as const
      await unstored.write({ kind: 'event', event, atMs: clock.now() })
    },
  }
}

/** Reports a reload to operators. */
async function tellReloaded({ unstored, clock }: Parts, reloaded: Reloaded, by: Actor): Promise<void> {
  const nowMs = clock.now()
  const action: OperatorAction = {
    atMs: nowMs,
    by,
    action: 'config.reloaded',
    target: null,
    detail: { replica: REPLICA.name, ...reloaded },
  }
  await unstored.write({ kind: 'event', event: { event: 'reloaded', replica: REPLICA.name, ...reloaded }, atMs: nowMs, action })
}

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
function reloadedSettings(before: Settings, next: Settings): readonly string[] {
  return changedNames(before, next)
    .flatMap((name) => {
      if (name === 'endpoints') return changedItems(name, before.endpoints, next.endpoints)
      if (name === 'apps') return changedItems(name, before.apps, next.apps)
      if (name === 'watchdogs') return changedItems(name, before.watchdogs ?? [], next.watchdogs ?? [])
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
