import type { Selectable } from 'kysely'
import type { Job, JobCursor } from '../domain/admin/job.ts'
import type { EndpointHealth } from '../domain/delivery/endpoint-health.ts'
import type { SealedKeys } from '../domain/delivery/endpoint-keys.ts'
import { defaultSettings, type Endpoint, type EndpointState, noFilters } from '../domain/delivery/endpoint-state.ts'
import type { FeedKind, PayloadRef } from '../domain/delivery/feed-entry.ts'
import { type Audience, type BackfillSpan, fullAudience, noAudience, type Telling } from '../domain/history/audience.ts'
import type { OrderContext } from '../domain/history/order-context.ts'
import type { ParcelState } from '../domain/history/parcel-state.ts'
import type { KeptAnswer } from '../domain/history/pull-response.ts'
import type { ReportNote } from '../domain/history/report-notes.ts'
import { LISTED_ID_BYTES } from '../domain/history/sightings.ts'
import { isObject, parseStored, type RawMembers } from '../domain/json-body.ts'
import type { Tables } from './tables.ts'

/** Null: there are no unknown members, as in nearly all sightings. */
export function encodeExtra(extra: RawMembers): string | null {
  return extra.length === 0 ? null : JSON.stringify(extra)
}

export function decodeExtra(json: string | null): RawMembers {
  // Only `encodeExtra` writes this, so its shape is certain.
  return json === null ? [] : (JSON.parse(json) as RawMembers)
}

/** The members of an answer that no query filters by. They have no columns, and are stored together as JSON. */
type AnswerHead = Omit<KeptAnswer, 'language' | 'digest' | 'askedAtMs' | 'entryCount' | 'flawed'>

export function encodeAnswerHead(head: AnswerHead): string {
  return JSON.stringify(head)
}

type AnswerRow = Pick<Tables['answer'], 'language' | 'digest' | 'asked_at_ms' | 'entry_count' | 'is_flawed' | 'head'>

export function decodeAnswer(row: AnswerRow): KeptAnswer {
  // Only `encodeAnswerHead` writes this, so its shape is certain.
  const head = JSON.parse(row.head) as AnswerHead
  return {
    ...head,
    language: row.language,
    askedAtMs: row.asked_at_ms,
    digest: Buffer.from(row.digest).toString('hex'),
    entryCount: row.entry_count,
    flawed: row.is_flawed === 1,
  }
}

export function encodeListed(ids: readonly string[]): Uint8Array {
  return Buffer.concat(ids.map((id) => Buffer.from(id, 'base64url')))
}

export function decodeListed(listed: Uint8Array | null): readonly string[] | null {
  if (listed === null) return null
  const bytes = Buffer.from(listed)
  return Array.from({ length: bytes.length / LISTED_ID_BYTES }, (_, at) =>
    bytes.subarray(at * LISTED_ID_BYTES, (at + 1) * LISTED_ID_BYTES).toString('base64url'),
  )
}

export function encodeParcel(state: ParcelState): Selectable<Tables['parcel']> {
  return {
    id: state.parcelId,
    watched_at_ms: state.watchedAtMs,
    first_pushed_at_ms: state.firstPushedAtMs,
    activated_at_ms: state.activatedAtMs,
    entry_count: state.entryCount,
    latest_status: state.latest?.status ?? null,
    latest_at_ms: state.latest?.atMs ?? null,
    latest_learnt_at_ms: state.latest?.learntAtMs ?? null,
    last_seen_at_ms: state.lastSeenAtMs,
    checked_at_ms: state.checkedAtMs,
    failures: state.failures,
    next_poll_at_ms: state.nextPollAtMs,
    stopped: state.stopped,
    is_full: state.full ? 1 : 0,
  }
}

export function decodeParcel(row: Selectable<Tables['parcel']>): ParcelState {
  return {
    parcelId: row.id,
    watchedAtMs: row.watched_at_ms,
    firstPushedAtMs: row.first_pushed_at_ms,
    activatedAtMs: row.activated_at_ms,
    entryCount: row.entry_count,
    latest: decodeLatest(row),
    lastSeenAtMs: row.last_seen_at_ms,
    checkedAtMs: row.checked_at_ms,
    failures: row.failures,
    nextPollAtMs: row.next_poll_at_ms,
    // The column holds only what `encodeParcel` wrote.
    stopped: row.stopped as ParcelState['stopped'],
    full: row.is_full === 1,
  }
}

function decodeLatest({ latest_status: status, latest_at_ms: atMs, latest_learnt_at_ms: learntAtMs }: Selectable<Tables['parcel']>) {
  if (status === null || atMs === null) return null
  return learntAtMs === null ? { status, atMs } : { status, atMs, learntAtMs }
}

/** A feed event's kind is stored as its index in this list, so only append to it. */
const FEED_KINDS: readonly FeedKind[] = ['entry', 'update', 'united', 'split', 'join', 'retired', 'erased', 'stalled', 'recovered']

export function encodeFeedKind(kind: FeedKind): number {
  return FEED_KINDS.indexOf(kind)
}

const COMPOSED = 0
const COMPOSED_BACKFILL = -1

/**
 * A push is stored as its inbox id, which is always above 0. Backfill that also goes to endpoints that began by a time is stored as the negated
 * time; all other backfill as -1. Null: the event has no bytes to send.
 */
export function encodePayloadRef(ref: PayloadRef | null): number | null {
  if (ref === null) return null
  if (ref.kind === 'push') return ref.inboxId
  if (ref.backfill === null) return COMPOSED
  return ref.backfill.beganBy === null ? COMPOSED_BACKFILL : Math.min(COMPOSED_BACKFILL - 1, -ref.backfill.beganBy)
}

export function decodePayloadRef(ref: number): PayloadRef {
  if (ref > 0) return { kind: 'push', inboxId: ref }
  return { kind: 'composed', backfill: ref === COMPOSED ? null : { beganBy: ref === COMPOSED_BACKFILL ? null : -ref } }
}

const NOBODY = 0
const ALL = 1

/**
 * `nobody`: 0. `all`: 1. `backfill` whose last telling was at sequence 7: -7. `rest` after a telling at sequence 7: 8. The most frequent
 * audiences are 0 and 1, because these take no space in a SQLite row.
 */
export function encodeAudience(audience: Audience): number {
  if (!('tellings' in audience)) return audience.kind === 'all' ? ALL : NOBODY
  const at = audience.tellings.at(-1)?.at ?? 0
  return audience.kind === 'backfill' ? -at : at + 1
}

/** Each telling is two numbers of a JSON list: its sequence, and its time or 0. Null: `encodeAudience` says everything. */
export function encodeTellings(audience: Audience): string | null {
  if (!('tellings' in audience) || (audience.tellings.length === 1 && audience.tellings[0]?.beganBy === null)) return null
  return JSON.stringify(audience.tellings.flatMap(({ at, beganBy }) => [at, beganBy ?? 0]))
}

export function decodeAudience(audience: number, tellings: string | null): Audience {
  if (audience === NOBODY) return noAudience
  if (audience === ALL) return fullAudience
  const kind = audience < 0 ? 'backfill' : 'rest'
  return { kind, tellings: tellings === null ? [{ at: audience < 0 ? -audience : audience - 1, beganBy: null }] : decodeTellings(tellings) }
}

function decodeTellings(text: string): readonly Telling[] {
  // Only `encodeTellings` writes this, so its shape is certain.
  const numbers = (parseStored(text) ?? []) as readonly number[]
  return numbers.flatMap((at, index) => (index % 2 === 1 ? [] : { at, beganBy: numbers[index + 1] || null }))
}

/** Returns the identifiers of the parcel that was joined to another. `detail`: from the audit record of the join. */
export function decodeJoined(detail: string): readonly string[] {
  // Only `joinParcels` writes this, so its shape is certain, unless the row is damaged.
  return (parseStored(detail) as { identifiers: readonly string[] } | undefined)?.identifiers ?? []
}

/** Returns the id of the parcel that was joined to another. Null: an erasure has removed the id. */
export function decodeJoinOrigin(detail: string): number | null {
  // Only `joinParcels` and an erasure write this, so its shape is certain, unless the row is damaged.
  return (parseStored(detail) as { from?: { parcelId: number } } | undefined)?.from?.parcelId ?? null
}

/** Returns what apps had said of the orders of joined parcels. */
export function decodeJoinedOrders(detail: string): readonly OrderContext[] {
  // Only `joinParcels` and an erasure write this, so its shape is certain, unless the row is damaged.
  return (parseStored(detail) as { orders?: readonly OrderContext[] } | undefined)?.orders ?? []
}

/** The labels of an order. */
export function decodeLabels(labels: string): OrderContext['labels'] {
  // Only `contextRow` writes this, so its shape is certain.
  return JSON.parse(labels) as OrderContext['labels']
}

/** Only `addReportNote` writes this, so its shape is certain. A note that is damaged counts nothing. */
export function decodeReportNote(note: string): ReportNote {
  return (parseStored(note) ?? { counts: {} }) as ReportNote
}

export function decodeFeedKind(number: number): FeedKind {
  const kind = FEED_KINDS[number]
  if (kind === undefined) throw new Error(`the store holds a feed event of an unknown kind (${number})`)
  return kind
}

type EndpointSettings = Omit<Endpoint, 'id' | 'name' | 'enabled'>
type StoredSettings = EndpointSettings & { readonly secretsFingerprint?: string | undefined }

/** The settings that every row has, in one order, because a row that says the same is not saved again. */
const STORED = ['url', 'signature', 'filters', 'backfill', 'ratePerSecond', 'concurrency', 'scheduleMs', 'refusals', 'headers'] as const
/** Rows of earlier versions lack the others, so they are stored only if they differ from the default. */
const { enabled: _enabled, ...DEFAULTS } = defaultSettings
const OTHERS = (Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]).filter((name) => !STORED.some((stored) => stored === name))

export function encodeEndpointSettings({ endpoint, secretsFingerprint }: Pick<EndpointState, 'endpoint' | 'secretsFingerprint'>): string {
  const others = OTHERS.filter((name) => JSON.stringify(endpoint[name]) !== JSON.stringify(DEFAULTS[name]))
  const settingsOf = (names: readonly (keyof EndpointSettings)[]) => Object.fromEntries(names.map((name) => [name, endpoint[name]]))
  return JSON.stringify({ ...settingsOf(STORED), secretsFingerprint, ...settingsOf(others) })
}

function decodeSettings(text: string): StoredSettings {
  // Rows of earlier versions lack settings and filters. `encodeEndpointSettings` wrote all that they have, so its shape is certain.
  const settings = { ...DEFAULTS, ...(JSON.parse(text) as Pick<StoredSettings, 'url'> & Partial<StoredSettings>) }
  return { ...settings, filters: { ...noFilters, ...settings.filters } }
}

/** Whether an endpoint can be decoded. What else is damaged in a row counts as empty. */
export function isReadableEndpoint(row: Pick<Selectable<Tables['endpoint']>, 'settings' | 'sealed_keys'>): boolean {
  return isObject(parseStored(row.settings)) && (row.sealed_keys === null || isObject(parseStored(row.sealed_keys)))
}

export function decodeEndpoint(row: Selectable<Tables['endpoint']>): EndpointState {
  // The columns hold only what `saveEndpoint` wrote.
  const { secretsFingerprint, ...settings } = decodeSettings(row.settings)
  const disabled = row.disabled as EndpointState['disabled']
  return {
    endpoint: { ...settings, id: String(row.id), name: row.name, enabled: disabled === null },
    origin: row.origin as EndpointState['origin'],
    disabled,
    ...decodeDisabledSince(row),
    health: decodeHealth(row),
    keys: row.sealed_keys === null ? null : decodeSealedKeys(row.sealed_keys),
    ...(secretsFingerprint === undefined ? {} : { secretsFingerprint }),
    queuedTo: row.queued_to,
    firstSequence: row.first_sequence,
    beganAtMs: row.began_at_ms,
    backfilled: decodeSpan(row),
  }
}

function decodeDisabledSince({ disabled, disabled_at_ms: atMs, disabled_by: by }: Selectable<Tables['endpoint']>) {
  return disabled === null || atMs === null ? {} : { disabledSince: { atMs, by } }
}

export function decodeEndpointTarget(settings: string): Pick<Endpoint, 'url' | 'headers'> {
  const { url, headers } = decodeSettings(settings)
  return { url, headers }
}

function decodeSpan({ backfill_from: from, backfill_to: to, backfill_earlier }: Selectable<Tables['endpoint']>): BackfillSpan | null {
  if (from === null) return null
  const earlier = (parseStored(backfill_earlier) ?? []) as readonly (readonly [number, number])[]
  return earlier.length === 0 ? { from, to } : { from, to, earlier }
}

export function encodeHealth(health: EndpointHealth) {
  const { lastSuccessAtMs, failingSinceMs, failedForMs, failedParcels, probing, round, wokenAtMs, alarmedAtMs, pace } = health
  return {
    succeeded_at_ms: lastSuccessAtMs,
    failing_since_ms: failingSinceMs,
    failed_for_ms: failedForMs,
    failed_parcels: JSON.stringify(failedParcels),
    probe_at_ms: probing?.atMs ?? null,
    probes_failed: probing?.failed ?? 0,
    refused_from: probing?.refused?.fromRound ?? null,
    refused_at_ms: probing?.refused?.atMs ?? null,
    round,
    woken_at_ms: wokenAtMs,
    alarmed_at_ms: alarmedAtMs,
    pace: pace === null ? null : JSON.stringify(pace),
  }
}

function decodeHealth(row: Selectable<Tables['endpoint']>): EndpointHealth {
  return {
    lastSuccessAtMs: row.succeeded_at_ms,
    failingSinceMs: row.failing_since_ms,
    failedForMs: row.failed_for_ms,
    // Only `encodeHealth` writes this, so its shape is certain.
    failedParcels: (parseStored(row.failed_parcels) ?? []) as readonly number[],
    probing: decodeProbing(row),
    round: row.round,
    wokenAtMs: row.woken_at_ms,
    alarmedAtMs: row.alarmed_at_ms,
    // Only `encodeHealth` writes this, so its shape is certain.
    pace: row.pace === null ? null : (JSON.parse(row.pace) as EndpointHealth['pace']),
  }
}

function decodeProbing({ probe_at_ms: atMs, ...row }: Selectable<Tables['endpoint']>): EndpointHealth['probing'] {
  if (atMs === null) return null
  const { probes_failed: failed, refused_from: fromRound, refused_at_ms: refusedAtMs } = row
  const isRefusing = fromRound !== null && refusedAtMs !== null
  return { atMs, failed, ...(isRefusing ? { refused: { fromRound, atMs: refusedAtMs } } : {}) }
}

function decodeSealedKeys(text: string): SealedKeys {
  // Only `encodeSealedKeys` writes this, so its shape is certain.
  return JSON.parse(text) as SealedKeys
}

export function encodeSealedKeys(keys: EndpointState['keys']): string | null {
  return keys === null ? null : JSON.stringify(keys)
}

/** The stored numbers. Never change one. */
export const DELIVERY_STATE = { behind: 0, due: 1, delivered: 2, dead: 3, cancelled: 4 } as const

export function isReadableJob(row: Pick<Selectable<Tables['job']>, 'task' | 'place'>): boolean {
  return isObject(parseStored(row.task)) && (row.place === null || isObject(parseStored(row.place)))
}

export function decodeJob(row: Selectable<Tables['job']>): Job {
  return {
    jobId: row.id,
    // The columns hold only what `insertJob`, `saveJob` and `cancelJob` wrote.
    task: decodeTask(row.task),
    cursor: decodeJobCursor(row.place),
    state: row.state as Job['state'],
    by: row.started_by,
    done: row.done,
    failure: row.failure,
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
  }
}

/** Earlier versions had replays that selected no deliveries. Such a job has ended, or ends without replaying anything. */
function decodeTask(text: string): Job['task'] {
  const task = JSON.parse(text) as Job['task']
  if (task.kind !== 'replay' || 'selection' in task) return task
  const { to }: { readonly to: string } = task
  const selection = { endpointId: to, states: [], fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null }
  return { kind: 'replay', to, selection, untilMs: 0 }
}

/** Decodes a setting that a function of the store has written as JSON, so its shape is certain. Null: it is damaged. */
export function decodeSetting<State>(stored: Uint8Array): State | null {
  return (parseStored(Buffer.from(stored).toString()) as State | undefined) ?? null
}

export function encodeJobCursor(cursor: JobCursor | null): string | null {
  return cursor === null ? null : JSON.stringify(cursor)
}

function decodeJobCursor(cursor: string | null): JobCursor | null {
  // Only `encodeJobCursor` writes this, so its shape is certain.
  return cursor === null ? null : (JSON.parse(cursor) as JobCursor)
}
