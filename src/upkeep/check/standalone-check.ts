import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Verdict } from '../../console/problems/concern.ts'
import { createCarrier } from '../../core/carrier/call/carrier-client.ts'
import type { Config } from '../../core/config/config.ts'
import { systemCode } from '../../core/domain/errors.ts'
import { TOMBSTONE_SEAL } from '../../core/domain/history/erased.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { createEndpointKeys } from '../../core/flow/delivery/endpoint-vault.ts'
import type { Clock } from '../../core/flow/ports.ts'
import { createVault } from '../../core/ops/vault.ts'
import { tryConnection } from '../../core/outbound/try-connection.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { roomNear } from '../../core/store/sqlite/file.ts'
import { behindLinks } from '../../core/store/sqlite/lock.ts'
import { openAtRestKeys } from '../../core/wiring/at-rest-keys.ts'
import { authorityOf, languagesOf } from '../../core/wiring/carrier.ts'
import { operatorRoute, readRoute } from '../../core/wiring/delivery/configured-endpoints.ts'
import { describeRefusal } from '../../core/wiring/listen.ts'
import { openGuards } from '../../core/wiring/outbound.ts'
import { NO_BACKUPS } from '../backups/backup.rules.ts'
import { backupFolder } from '../backups/backup-folder.ts'
import { readStorageState } from '../erasure/clean-storage.ts'
import { explainLostTombstones } from '../erasure/tombstone-key.ts'
import { knownBackups, knownTombstones } from '../restore/inspect-stores.ts'
import { sqlite } from '../sqlite-engine.ts'
import type { ServerStores } from '../stores-on-servers.ts'
import { type CheckLine, failed, judgeErasure, ok, type Probe, skipped, warning } from './check.rules.ts'
import { inspectSqlite } from './inspect-sqlite.ts'
import { backupProbe, configProbes, diskProbe, filesProbe, judgeAtRestKeys, retentionProbe } from './local-probes.ts'
import { type ConnectTo, carrierProbe, type EndpointToTry, endpointProbes, loginSettingOf } from './outbound-probes.ts'
import { answeredBefore, createCheck } from './running-check.ts'

interface StandalonePorts {
  /** Whether a relay runs but could not be asked, so that its addresses are in use. */
  readonly isRunning: boolean
  readonly server: ServerStores
}

/** Checks a deployment when no relay can be asked. It opens the store only to read it. */
export async function checkStandalone(config: Config, { isRunning, server }: StandalonePorts): Promise<readonly CheckLine[]> {
  const file = config.store.engine === 'sqlite' ? config.store.path : null
  const { guard, operatorGuard } = openGuards(config, () => [config.listen.public.port, config.listen.internal.port])
  const connect: ConnectTo = (to) =>
    tryConnection(to, { guard: to.route.isOperator === true ? operatorGuard : guard, timeoutMs: config.delivery.timeoutMs })
  const probes: readonly Probe[] = [
    ...configProbes(config, systemClock),
    { name: 'store', subject: null, look: () => lookAtStore(config, server) },
    diskProbe(config, async () => (file === null ? null : await roomNear(behindLinks(file)))),
    filesProbe(file),
    ...(['public', 'internal'] as const).map(
      (subject): Probe => ({ name: 'ports', subject, look: () => tryPort(config, subject, isRunning) }),
    ),
    { name: 'credentials', subject: null, look: () => askCarrier(config, { isRunning, server }) },
    { name: 'push', subject: null, look: async () => skipped('No relay was asked, so no push was sent.') },
    retentionProbe(config, async () => null, systemClock),
    backupProbe(config, { list: () => listBackups(config, file) }, systemClock),
    ...endpointProbes(endpointsOf(config), connect),
  ]
  const check = createCheck({
    probes: async () => probes,
    pause: (ms) => pause(ms, undefined, { ref: false }),
    monotonic: systemClock.monotonic,
  })
  return await check()
}

async function askCarrier(config: Config, { isRunning, server }: StandalonePorts) {
  const carrier = openCarrierAlone(config)
  try {
    const note = isRunning
      ? ' This call and the next are not counted, as the relay was not asked.'
      : ' This call and the next are not counted, as no relay runs that counts them.'
    const [language, loginSetting] = [languagesOf(config)[0], loginSettingOf(config.upstream)]
    return await carrierProbe(carrier, { language, known: () => answeredInStore(config, server), loginSetting, note }).look()
  } finally {
    await carrier.close()
  }
}

/** Reads a store that a relay could open as it is. Null: there is none, a relay uses it, or it holds no such parcel. */
async function answeredInStore({ store }: Config, server: ServerStores): Promise<string | null> {
  try {
    if (store.engine === 'sqlite') {
      const { state, path } = inspectSqlite(store.path)
      return state === 'ready' ? await readOnce(sqlite.openReadStore(path), answeredBefore) : null
    }
    const url = store.url.reveal()
    return (await server.inspect(url)).schema === 'current' ? await readOnce(server.engine.openReadStore(url), answeredBefore) : null
  } catch {
    // The line of the store says what is wrong with it.
    return null
  }
}

async function readOnce<T>(reads: OpenReads, read: (reads: OpenReads) => Promise<T>): Promise<T> {
  try {
    return await read(reads)
  } finally {
    await reads.close()
  }
}

type OpenReads = ReturnType<typeof sqlite.openReadStore>

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

function openCarrierAlone(config: Config) {
  const { proxy, ...upstream } = config.upstream
  return createCarrier({
    ...upstream,
    password: () => upstream.password.reveal(),
    clock: systemClock satisfies Clock,
    log: SILENT,
    ca: authorityOf(config),
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
  })
}

async function lookAtStore(config: Config, server: ServerStores): Promise<readonly CheckLine[]> {
  const line = (verdict: Verdict): CheckLine => ({ name: 'store', subject: null, ...verdict })
  const keys = async (place: string, tombstoneKey: string | null): Promise<CheckLine> => ({
    name: 'keys',
    subject: 'secrets.atRestKeys',
    ...(await judgeKeys(config, place, { tombstoneKey, server })),
  })
  if (config.store.engine === 'sqlite') {
    const found = inspectSqlite(config.store.path)
    if (found.state === 'new') return [line(ok(`${found.path} does not exist yet: the relay makes it.`))]
    if (found.state === 'in_use') return [line(skipped(`${found.path} is in use${found.pid === null ? '' : ` by process ${found.pid}`}.`))]
    const erasure: CheckLine = { name: 'erasure', subject: null, ...judgeErasure(readStorageState(found.path)) }
    return [line(ok(`${found.path} can be opened.`)), await keys(found.path, tombstoneKeyOf(found.path)), erasure]
  }
  const url = config.store.url.reveal()
  const { schema, replicas, tombstoneKey } = await server.inspect(url)
  const use = replicas === 0 ? 'no relay uses it' : `${replicas} ${replicas === 1 ? 'relay uses' : 'relays use'} it`
  if (schema !== 'current') return [line(ok(`The relay can make or update its tables in ${server.nameOf(url)}; ${use}.`))]
  return [line(ok(`${server.nameOf(url)} can be used; ${use}.`)), await keys(url, tombstoneKey)]
}

/** `tombstoneKey`: the encrypted key of the tombstones, without which a relay does not start; null: nothing was erased. */
async function judgeKeys(
  config: Config,
  place: string,
  { tombstoneKey, server }: Pick<StandalonePorts, 'server'> & { readonly tombstoneKey: string | null },
): Promise<Verdict> {
  const { engine } = config.store
  const atRest = openAtRestKeys(config, engine === 'sqlite' ? place : server.nameOf(place))
  const fault = atRest.fault()
  if (fault !== null) return judgeAtRestKeys(config, null, fault)
  const vault = createVault(atRest.keys)
  if (tombstoneKey !== null && (await vault.open(tombstoneKey, TOMBSTONE_SEAL)) === null)
    return failed(explainLostTombstones(atRest.keyFile() ?? 'secrets.atRestKeys'))
  const opened = (engine === 'sqlite' ? sqlite : server.engine).openReadStore(place)
  const found = await readOnce(opened, (reads) => createEndpointKeys({ vault, reads, log: SILENT }, atRest).check())
  return judgeAtRestKeys(config, found, null)
}

/** Throws if a line of the file of tombstones cannot be read, as a start does. */
function tombstoneKeyOf(path: string): string | null {
  const { sealedKey, tombstones } = knownTombstones(path)
  return tombstones.length === 0 ? null : sealedKey
}

/** The store remembers on which disk the last backup was made, and whether the one after it failed. */
async function listBackups({ backup }: Config, store: string | null) {
  const directory = backup?.directory ?? null
  const { last, failing } = store === null ? NO_BACKUPS : knownBackups(behindLinks(store))
  if (directory === null) return { backups: [], failing, unreadable: null }
  try {
    return { backups: await backupFolder.list(resolve(directory), last?.place ?? null), failing, unreadable: null }
  } catch (error) {
    return { backups: [], failing, unreadable: describeFailure(error) }
  }
}

/** Checks whether an address of the relay is free, by listening there for a moment. */
async function tryPort({ listen, store }: Config, subject: 'public' | 'internal', isRunning: boolean): Promise<Verdict> {
  const { host, port } = listen[subject]
  if (isRunning) return skipped('A running relay uses it.')
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen({ host, port }, resolve))
    return ok(port === 0 ? `The relay takes any free port of ${host}.` : `${host} port ${port} is free.`)
  } catch (error) {
    const holder = systemCode(error) === 'EADDRINUSE' ? holderOf(store) : null
    if (holder !== null)
      return warning(
        `${host} port ${port} is in use, probably by the relay itself: ${holder} It may be starting. Check again when it answers.`,
      )
    return failed(`${describeRefusal(listen[subject], error)} (listen.${subject}).`)
  } finally {
    server.close()
  }
}

/** Says which process has the lock of the store, as a relay takes it before it listens; null: none has. */
function holderOf(store: Config['store']): string | null {
  const found = store.engine === 'sqlite' ? inspectSqlite(store.path) : null
  if (found?.state !== 'in_use') return null
  return `the store is in use${found.pid === null ? '' : ` by process ${found.pid}`}.`
}

function endpointsOf({ endpoints, operator }: Config): readonly EndpointToTry[] {
  const named = endpoints.map((endpoint) => ({
    name: endpoint.name,
    url: endpoint.url,
    enabled: endpoint.enabled,
    trouble: null,
    route: () => readRoute(endpoint),
  }))
  return operator === null
    ? named
    : [
        ...named,
        { name: 'operator', url: operator.url.reveal(), enabled: true, trouble: null, route: () => operatorRoute({ operator }) ?? {} },
      ]
}
