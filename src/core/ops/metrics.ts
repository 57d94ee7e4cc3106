import { collectDefaultMetrics, type Gauge, Registry } from 'prom-client'
import { type ClockDoubt, DOUBTS } from '../domain/admin/clock-record.ts'
import type { Replica } from '../domain/admin/replica.ts'
import { CONDITIONS } from '../domain/delivery/endpoint-state.ts'
import type { EndpointGauge } from '../flow/delivery/endpoint-queries.ts'
import type { Meter } from '../flow/ports.ts'
import { createAttempts, createCounters, showKeys } from './counters.ts'
import { instrumentsOf } from './instruments.ts'

/** Values that are read at each scrape. The counts of the store are absent if it could not be read. */
export type Gauges = OwnGauges & Partial<StoreGauges>

interface StoreGauges {
  readonly parcels: number
  readonly watched: number
  readonly overdue: number
  readonly quarantined: number
}

interface OwnGauges {
  readonly commitQueue: number
  readonly carrierQueue: number
  readonly carrierCallsToday: number
  readonly carrierCallsPerDay: number
  readonly carrierResting: number
  readonly pollingQuiet: number
  readonly carrierCredentialsRefused: number
  readonly pushesHealthy: number
  readonly pushesSilent: number
  readonly freeBytes: number
  readonly freeBytesMin: number
  readonly logBytes: number
  readonly logBytesWarn: number
  readonly pushesRefused: number
}

export interface Metrics {
  readonly meter: Meter
  /** Returns all metrics in the Prometheus text format. */
  render(): Promise<{ readonly contentType: string; readonly body: string }>
}

export interface MetricsPorts {
  /** Why the clock may be wrong; null: nothing speaks against it. */
  readonly clockDoubt: () => Promise<Pick<ClockDoubt, 'because'> | null>
  /** How many keys of the carrier are configured. A reload may change it. */
  readonly keys: () => number
  readonly gauges: () => Promise<Gauges>
  readonly endpoints: () => Promise<readonly EndpointGauge[]>
  /** Returns when the certificate of each listener expires (epoch milliseconds). */
  readonly certificates: () => readonly { readonly listener: string; readonly untilMs: number }[]
  /** Returns when the relay's client certificate for each endpoint expires (epoch milliseconds). */
  readonly clientCertificates: () => readonly { readonly endpoint: string; readonly untilMs: number }[]
  /** Counts the encrypted secrets in the store. `upToDate`: encrypted with the first at-rest key. `outdated`: with another key. */
  readonly secrets: () => Promise<{ readonly upToDate: number; readonly outdated: number }>
  /** Those of wings. Each registers its metrics, and returns what reads their values before a scrape. */
  readonly offered: readonly ((registry: Registry) => () => unknown)[]
  /** `id`: the id of this replica. */
  readonly replicas: () => Promise<{ readonly all: readonly Pick<Replica, 'id' | 'roles'>[]; readonly id: number }>
}

/** `prom-client` adds more metrics, such as the delay of the event loop and the memory. */
export function createMetrics(
  version: string,
  { keys, gauges, clockDoubt, endpoints, replicas, certificates, clientCertificates, secrets, offered }: MetricsPorts,
): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  instrumentsOf(registry).gauge('relay_build_info', '1; the version is a label.', ['version']).set({ version }, 1)
  const { received, explained, erased, batch, commit, polls, missed, missedDelay, attempted, attemptTime, merged, rebuilt, served } =
    createCounters(registry)
  // `labels()` of `prom-client` takes as long as an answer from the cache. So call it once for each label and remember the counter.
  const servedBy = remembered((result) => served.labels(result))
  const attempts = createAttempts(attempted)
  const receivedBy = remembered((outcome, key) => received.labels(outcome, key))
  const readGauges = createGauges(registry, gauges)
  const readClock = createClockGauge(registry, clockDoubt)
  const readEndpoints = createEndpointGauges(registry, endpoints, attempts.show)
  const readReplicas = createReplicaGauges(registry, replicas)
  const readCertificates = createCertificateGauge(registry, certificates)
  const readClients = createClientCertificateGauge(registry, clientCertificates)
  const readSecrets = createSecretsGauge(registry, secrets)
  const readOffered = offered.map((register) => register(registry))
  return {
    async render() {
      showKeys(received, keys())
      await readGauges()
      await readClock()
      await readEndpoints()
      await readReplicas()
      readCertificates()
      readClients()
      await readSecrets()
      for (const read of readOffered) await read()
      return { contentType: registry.contentType, body: await registry.metrics() }
    },
    meter: {
      pushReceived: (outcome, keyIndex, count = 1) => receivedBy(outcome, keyIndex === null ? 'none' : String(keyIndex)).inc(count),
      refusalExplained(causes) {
        for (const cause of causes) explained.inc({ cause })
      },
      batchCommitted(size, durationMs) {
        batch.observe(size)
        commit.observe(durationMs / 1000)
      },
      pollEnded: (outcome) => polls.inc({ outcome }),
      missedPush(latencyMs) {
        missed.inc()
        missedDelay.observe(latencyMs / 1000)
      },
      deliveryAttempted(endpoint, outcome, durationMs) {
        attempts.add(endpoint.name, outcome)
        attemptTime.observe(durationMs / 1000)
      },
      merged: (result, count) => merged.inc({ result }, count),
      rebuilt({ equal, differing, corrected, left }) {
        for (const [result, count] of Object.entries({ equal, differing, corrected, left })) rebuilt.inc({ result }, count)
      },
      erased: (parcels) => erased.inc(parcels),
      served: (result) => servedBy(result).inc(),
    },
  }
}

function remembered<T>(make: (label: string, more: string) => T): (label: string, more?: string) => T {
  const made = new Map<string, T>()
  return (label, more = '') => {
    const name = more === '' ? label : `${label} ${more}`
    const known = made.get(name)
    if (known !== undefined) return known
    const one = make(label, more)
    made.set(name, one)
    return one
  }
}

function createEndpointGauges(
  registry: Registry,
  read: () => Promise<readonly EndpointGauge[]>,
  onNames: (names: ReadonlySet<string>) => void,
): () => Promise<void> {
  const { gauge: gaugeOf } = instrumentsOf(registry)
  const gauge = (name: string, help: string) => gaugeOf(name, help, ['endpoint'])
  const waiting = gauge('relay_endpoint_waiting', 'Deliveries that wait for the endpoint.')
  const oldest = gauge('relay_endpoint_oldest_waiting_seconds', 'Age of the oldest waiting delivery; 0: none waits.')
  const dead = gauge('relay_endpoint_dead', 'Dead deliveries of the endpoint.')
  const failing = gauge(
    'relay_endpoint_failing',
    '1 while the endpoint is failing and only probed; for `others`, the number of such endpoints.',
  )
  const disabled = gauge(
    'relay_endpoint_disabled',
    '1 while the endpoint is disabled: by an operator, by its 410 or by 120 h of failures; for `others`, the number of such endpoints.',
  )
  const condition = gaugeOf(
    'relay_endpoint_condition',
    '1 for the condition that the endpoint is in, 0 for the others; for `others`, the number of such endpoints.',
    ['endpoint', 'condition'],
  )
  return async () => {
    // If the store cannot be read, the last values stay: `relay_store_readable` reports the failure.
    const endpoints = await read().catch(() => null)
    if (endpoints === null) return
    onNames(new Set(endpoints.map(({ name }) => name)))
    for (const one of [waiting, oldest, dead, failing, disabled, condition]) one.reset()
    for (const { name, ...of } of endpoints) {
      waiting.set({ endpoint: name }, of.waiting)
      oldest.set({ endpoint: name }, of.oldestWaitingSeconds)
      dead.set({ endpoint: name }, of.dead)
      failing.set({ endpoint: name }, of.conditions.failing)
      disabled.set({ endpoint: name }, of.conditions.disabled)
      for (const one of CONDITIONS) condition.set({ endpoint: name, condition: one }, of.conditions[one])
    }
  }
}

function createClockGauge(registry: Registry, read: MetricsPorts['clockDoubt']): () => Promise<void> {
  const gauge = instrumentsOf(registry).gauge(
    'relay_clock_doubted',
    '1 while the clock may be wrong: it has jumped, or contradicts the clock of the carrier or of the machine.',
    ['because'],
  )
  for (const because of DOUBTS) gauge.set({ because }, 0)
  return async () => {
    // If the store cannot be asked, the last value stays, as `relay_store_readable` reports that.
    const doubt = await read().catch(() => undefined)
    if (doubt === undefined) return
    for (const because of DOUBTS) gauge.set({ because }, doubt?.because === because ? 1 : 0)
  }
}

function createReplicaGauges(registry: Registry, read: MetricsPorts['replicas']): () => Promise<void> {
  const { gauge } = instrumentsOf(registry)
  const count = gauge('relay_replicas', 'Relays that share the store.')
  const held = gauge(
    'relay_roles_held',
    'Roles that this replica holds: poller, janitor, and one dispatcher for each endpoint that it delivers to.',
    ['role'],
  )
  return async () => {
    const found = await read().catch(() => null)
    if (found === null) return
    count.set(found.all.length)
    const roles = found.all.find(({ id }) => id === found.id)?.roles ?? []
    for (const kind of ['poller', 'janitor', 'dispatcher']) {
      held.set({ role: kind }, roles.filter((role) => role.startsWith(kind)).length)
    }
  }
}

function createCertificateGauge(registry: Registry, read: MetricsPorts['certificates']): () => void {
  const gauge = instrumentsOf(registry).gauge(
    'relay_certificate_expiry_timestamp_seconds',
    'When the certificate that a listener shows expires.',
    ['listener'],
  )
  return () => {
    for (const { listener, untilMs } of read()) gauge.set({ listener }, untilMs / 1000)
  }
}

function createClientCertificateGauge(registry: Registry, read: MetricsPorts['clientCertificates']): () => void {
  const gauge = instrumentsOf(registry).gauge(
    'relay_endpoint_certificate_expiry_timestamp_seconds',
    'When the certificate that the relay shows to an endpoint of the config expires.',
    ['endpoint'],
  )
  return () => {
    // Remove the old labels first, because a reload may have removed a certificate.
    gauge.reset()
    for (const { endpoint, untilMs } of read()) gauge.set({ endpoint }, untilMs / 1000)
  }
}

function createSecretsGauge(registry: Registry, read: MetricsPorts['secrets']): () => Promise<void> {
  const gauge = instrumentsOf(registry).gauge(
    'relay_sealed_secrets',
    'Encrypted secrets in the store, by the at-rest key that has encrypted them: the first one, or another.',
    ['key'],
  )
  return async () => {
    const counts = await read().catch(() => null)
    if (counts === null) return
    gauge.set({ key: 'first' }, counts.upToDate)
    gauge.set({ key: 'other' }, counts.outdated)
  }
}

function createGauges(registry: Registry, read: () => Promise<Gauges>): () => Promise<void> {
  const { gauge } = instrumentsOf(registry)
  const readable = gauge('relay_store_readable', '1 if the store could be read for this scrape.')
  const all: Readonly<Record<keyof Gauges, Gauge>> = {
    commitQueue: gauge('relay_commit_queue', 'Observations that wait for a commit.'),
    carrierQueue: gauge('relay_carrier_queue', 'Calls to the carrier that wait for the budget.'),
    carrierCallsToday: gauge('relay_carrier_calls_today', 'Calls made to the carrier this UTC day.'),
    carrierCallsPerDay: gauge('relay_carrier_calls_per_day', 'The most calls to the carrier in a UTC day (upstream.callsPerDay).'),
    carrierCredentialsRefused: gauge('relay_carrier_credentials_refused', '1 while the carrier refuses the login of the relay.'),
    carrierResting: gauge('relay_carrier_resting', '1 while polling pauses because the carrier keeps failing.'),
    pollingQuiet: gauge('relay_polling_quiet', '1 during poll.quietHours, in which nothing is polled by schedule.'),
    pushesHealthy: gauge('relay_pushes_healthy', '1 while pushes come and few are lost, so that polls are rarer.'),
    pushesSilent: gauge('relay_pushes_silent', '1 while no pushes come although the carrier scans.'),
    parcels: gauge('relay_parcels', 'Parcels in the store.'),
    watched: gauge('relay_parcels_watched', 'Parcels with a next poll.'),
    overdue: gauge('relay_parcels_overdue', 'Parcels whose next poll is due and has not ended, polls under way included.'),
    quarantined: gauge('relay_inbox_quarantined', 'Quarantined pushes in the inbox.'),
    freeBytes: gauge('relay_store_free_bytes', 'Free space on the disk of the store.'),
    freeBytesMin: gauge('relay_store_free_bytes_min', 'With less free space than this (limits.freeSpaceMin), pushes are refused.'),
    logBytes: gauge('relay_store_wal_bytes', 'Size of the write-ahead log; large while another program holds a long read transaction.'),
    logBytesWarn: gauge('relay_store_wal_bytes_warn', 'A write-ahead log above this size is too large.'),
    pushesRefused: gauge('relay_pushes_refusing', '1 while no push can be taken, because the store cannot be written or its disk is full.'),
  }
  return async () => {
    try {
      const values = await read()
      for (const name of Object.keys(values)) if (isGauge(name)) all[name].set(values[name] ?? 0)
      readable.set(values.parcels === undefined ? 0 : 1)
    } catch {
      readable.set(0)
    }
  }
  function isGauge(name: string): name is keyof Gauges {
    return name in all
  }
}
