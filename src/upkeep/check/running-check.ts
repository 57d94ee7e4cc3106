import { setTimeout as pause } from 'node:timers/promises'
import { readableReason } from '../../console/problems/explain-problem.ts'
import { describeTrouble } from '../../console/problems/verdict.ts'
import type { Reporting } from '../../console/reporting/reporting.ts'
import type { Config } from '../../core/config/config.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { RouteOf } from '../../core/flow/delivery/dispatching/send-delivery.ts'
import { createSingleFlight } from '../../core/flow/shared-flight.ts'
import type { ReadSide } from '../../core/store/read-store.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import { languagesOf } from '../../core/wiring/carrier.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { REPLICA } from '../../core/wiring/replica-name.ts'
import { loadRetention } from '../retention/remove-aged.rows.ts'
import { type CheckLine, failed, inOrder, ok, type Probe } from './check.rules.ts'
import { backupProbe, configProbes, diskProbe, erasureProbe, filesProbe, judgeAtRestKeys, retentionProbe } from './local-probes.ts'
import { carrierProbe, type EndpointToTry, endpointProbes, loginSettingOf, pushProbe } from './outbound-probes.ts'

/**
 * Checks whether the deployment works. Returns lines in the order of `CHECK_NAMES`. The failure of one part does not affect the other lines.
 * Never rejects.
 */
export type Check = () => Promise<readonly CheckLine[]>

interface CheckPorts {
  readonly probes: () => Promise<readonly Probe[]>
  readonly pause: (ms: number) => Promise<unknown>
  /** Returns milliseconds from an arbitrary start. They never go back. */
  readonly monotonic: () => number
}

/** One look may take this long. Its requests time out earlier. */
const LOOK_MS = 30_000
const AT_ONCE = 16
/** A check calls the carrier and every endpoint, so its result is used again for this long. */
const KEPT_MS = 5000
/** After so many checks in ten minutes a result is used for a minute, so that checks in a loop leave the carrier's calls to polls. */
const MANY = { checks: 10, withinMs: 600_000, keptMs: 60_000 }

/** Creates the check. A call during a check, or shortly after it, returns the result of that check. */
export function createCheck({ probes, pause, monotonic }: CheckPorts): Check {
  const share = createSingleFlight<readonly CheckLine[]>()
  /** When the last checks began, the newest last. */
  let began: readonly number[] = []
  let last: { readonly lines: readonly CheckLine[]; readonly atMs: number } | null = null

  async function lookAt({ name, subject, look }: Probe): Promise<readonly CheckLine[]> {
    const late = pause(LOOK_MS).then(() => failed(`It gave no result within ${LOOK_MS / 1000} s.`))
    const found = await Promise.race([look(), late]).catch((error: unknown) => failed(describeFailure(error)))
    return 'state' in found ? [{ name, subject, ...found }] : found
  }

  async function run(): Promise<readonly CheckLine[]> {
    began = [...began, monotonic()].slice(-MANY.checks)
    const waiting = [...(await probes())]
    const lines: CheckLine[] = []
    const work = async () => {
      for (let probe = waiting.shift(); probe !== undefined; probe = waiting.shift()) lines.push(...(await lookAt(probe)))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    last = { lines: inOrder(lines), atMs: monotonic() }
    return last.lines
  }

  function keptMs(): number {
    const [first] = began
    return first !== undefined && began.length === MANY.checks && monotonic() - first < MANY.withinMs ? MANY.keptMs : KEPT_MS
  }

  return async () => (last !== null && monotonic() - last.atMs < keptMs() ? last.lines : await share('check', run))
}

type StoreParts = Pick<Relay, 'path' | 'reads' | 'clock' | 'disk' | 'atRest' | 'endpointKeys' | 'backups' | 'settings'>
type Parts = StoreParts & Pick<Relay, 'carrier'> & Pick<Capabilities, 'delivery'> & { readonly reporting: Reporting }

/**
 * Makes the check of a running relay. It uses the store, the carrier's client and the endpoints that the relay has open. `publicUrl` returns the
 * address of the public listener, with the port that it really has.
 */
export function openRunningCheck(parts: Parts, publicUrl: () => string): Check {
  const { path, reads, clock, disk, carrier, endpointKeys, backups, settings, delivery } = parts
  const keyFault = parts.atRest.fault
  // A key file that cannot be used would end this look with an error, and is told as such.
  const lostKeys = async () => (keyFault() === null ? await endpointKeys.check() : null)
  const probes = async (): Promise<readonly Probe[]> => {
    const config = settings()
    return [
      { name: 'relay', subject: null, look: async () => ok(`Version ${REPLICA.version} runs as ${REPLICA.name}.`) },
      ...configProbes(config, clock),
      { name: 'keys', subject: 'secrets.atRestKeys', look: async () => judgeAtRestKeys(config, await lostKeys(), keyFault()) },
      { name: 'store', subject: null, look: () => lookAtStore(parts) },
      diskProbe(config, async () => {
        await disk.check()
        return disk.state()
      }),
      filesProbe(config.store.engine === 'sqlite' ? path : null),
      carrierProbe(carrier, {
        language: languagesOf(config)[0],
        known: () => answeredBefore(reads),
        loginSetting: loginSettingOf(config.upstream),
      }),
      pushProbe(() => ({ publicUrl: publicUrl(), path: config.webhook.path, key: firstKey(config) })),
      retentionProbe(config, async () => (await loadRetention(reads.session)).last, clock),
      erasureProbe(config.store.engine === 'sqlite' ? path : null),
      backupProbe(config, backups, clock),
      ...endpointProbes((await reads.listEndpoints()).map(toTry(delivery.sending.routeOf)), delivery.tryConnection),
    ]
  }
  return createCheck({ probes, pause: (ms) => pause(ms, undefined, { ref: false }), monotonic: clock.monotonic })
}

/** Returns a parcel that the carrier has answered before; null: none is known. */
export async function answeredBefore(reads: Pick<ReadSide, 'answeredParcels'>): Promise<string | null> {
  return (await reads.answeredParcels({ orEver: true }))[0] ?? null
}

async function lookAtStore({ path, disk, reporting }: Parts) {
  // Check the disk now. Otherwise a deleted file of the store is noticed only at the next regular check.
  await disk.check()
  const { ready, reasons } = await reporting.readiness.read()
  return ready ? ok(`${path} is open, and takes pushes.`) : failed(`${reasons.map(readableReason).join('; ')}.`)
}

function firstKey({ webhook }: Config): string {
  return webhook.sharedKeys[0]?.reveal() ?? ''
}

function toTry(routeOf: RouteOf): (state: EndpointState) => EndpointToTry {
  return (state) => {
    const route = routeOf(state)
    return {
      ...state.endpoint,
      url: route.url ?? state.endpoint.url,
      enabled: state.disabled === null,
      trouble: describeTrouble(state),
      route: () => route,
    }
  }
}
