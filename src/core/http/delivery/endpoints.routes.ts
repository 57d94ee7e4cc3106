import { z } from 'zod'
import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type { FailureGroup } from '../../domain/delivery/dispatch-round.ts'
import {
  endpointChangeSchema,
  filterSchemas,
  type Kinds,
  keyRotationSchema,
  type Limit,
  newEndpointSchema,
  presentSettings,
  settingSchemas,
} from '../../domain/delivery/endpoint-settings.ts'
import type { EndpointView, InspectedEndpoint } from '../../flow/delivery/endpoint-queries.ts'
import { describeWarning, type KeyedEndpoint } from '../../flow/delivery/manage-endpoints.ts'
import {
  type AnswerOf,
  idOf,
  instant,
  location,
  named,
  numberedId,
  presentAnswerStart,
  presentInstant,
  wholeNumber,
} from '../server/answer-schemas.ts'
import { count, page, query, text } from '../server/route.ts'
import { callRoute, jsonBody, listRoute } from '../server/route-shapes.ts'
import { answerStart, failureReason } from './deliveries.routes.ts'

const limit = <Value>(schema: z.ZodType<Value>, { label, unset }: Limit) =>
  schema.nullable().describe(`${label}; null: ${unset.includes('.') ? `\`${unset}\`` : unset}.`)

/** How the API shows each kind of setting. */
const SHOWN: Kinds<string> = {
  flag: ({ answer }) => z.boolean().describe(answer),
  choice: ({ names }) => z.enum(names),
  several: ({ names, config }) => z.array(z.enum(names)).describe(config),
  either: () => z.boolean().nullable(),
  amount: (row) => limit(z.number(), row),
  count: (row) => limit(wholeNumber(), row),
  waits: (row) => limit(z.array(z.string()), row),
  values: () => z.array(z.string()).nullable(),
}

/** The members that tell how attempts failed. */
const failedWith = () => ({
  status: wholeNumber().nullable().describe('Null: there was no answer; see `reason`.'),
  reason: failureReason().nullable(),
  ...answerStart(),
  delivery: numberedId().describe('The delivery that last failed like this.'),
})

const redacted = (): z.ZodType<string> => z.literal('[redacted]')

function endpointMembers() {
  const { signature, events, backfill, ...settings } = settingSchemas(SHOWN)
  return {
    id: numberedId(),
    name: z.string(),
    url: z.string(),
    enabled: z.boolean(),
    signature,
    filters: z.strictObject(filterSchemas(SHOWN)),
    events,
    backfill,
    beganAt: instant().describe('When it began. It is sent everything that happened since then.'),
    ...settings,
    headers: z.record(z.string(), redacted()).describe('The names of its fixed headers; the values are never shown.'),
    origin: z.enum(['config', 'managed']),
    state: z.enum(['active', 'failing', 'disabled']),
    disabledBecause: z.enum(['operator', 'gone', 'failing', 'unnamed']).nullable(),
    disabledSince: instant().nullable().describe('Null: it is enabled, or the time is not known.'),
    disabledBy: z.string().nullable().describe('The operator who disabled it; null: no operator did.'),
    waiting: wholeNumber().describe('How many deliveries wait for it.'),
    oldestWaitingSince: instant().nullable().describe('Null: nothing waits.'),
    givenUp: wholeNumber().describe('How many deliveries are dead.'),
    lastSuccessAt: instant().nullable(),
    lastFailure: z.strictObject({ at: instant(), ...failedWith() }).nullable(),
    failingSince: instant().nullable().describe('When the first attempt failed after the last accepted one; null: none has failed since.'),
    limitPerSecond: z
      .number()
      .nullable()
      .describe('It limits us (429, or 503 with `Retry-After`) to about so many deliveries a second; null: it does not.'),
    waitsUntil: instant().nullable().describe('It limits us and asked to be sent nothing until then; null: it is sent deliveries.'),
    nextProbeAt: instant()
      .nullable()
      .describe('While it is failing: when a waiting event is attempted next; null: nothing waits, or it is not failing.'),
    newEventProbeAt: instant()
      .nullable()
      .describe(
        'While it is failing: when an event that comes now would be attempted, if nothing else waits for its parcel; null: it is not failing.',
      ),
    keySince: instant().nullable().describe('When its key was given; null: the key is in the config file, or the time is not known.'),
    nextKeyFrom: instant().nullable().describe('When the new key takes over; null: no key is being replaced.'),
    queuedTo: wholeNumber().nullable().describe('The sequence in the feed up to which events are queued for it; null: it has caught up.'),
  }
}

const fingerprint = () =>
  z
    .string()
    .regex(/^[0-9a-f]{8}$/)
    .nullable()

const endpointSchema = named('Endpoint', () => z.strictObject(endpointMembers()))

const inspectedEndpointSchema = named('InspectedEndpoint', () =>
  z.strictObject({
    ...endpointMembers(),
    keyFingerprint: fingerprint().describe(
      'A fingerprint of the key that signs, as `parcel-relay fingerprint` prints it; null: the key cannot be opened.',
    ),
    nextKeyFingerprint: fingerprint().describe('A fingerprint of the key that replaces it; null: no key is being replaced.'),
    keyFrom: z
      .union([z.strictObject({ env: z.string() }), z.strictObject({ file: z.string() })])
      .nullable()
      .describe(
        'Where the config takes its key from: an environment variable or a file; null: the key is written in the config itself, or is not in the config.',
      ),
    failures: z
      .array(z.strictObject({ ...failedWith(), count: wholeNumber(), firstAt: instant(), lastAt: instant() }))
      .describe('The failed attempts of the last 30 days, grouped by equal answers, the latest group first; at most 20 groups.'),
  }),
)

const keyedEndpointSchema = named('KeyedEndpoint', () =>
  z.strictObject({
    ...endpointMembers(),
    sharedKey: z.string().optional().describe('Shown in this answer only.'),
    warnings: z
      .array(z.string())
      .optional()
      .describe('What may be a mistake in its settings, such as a value in `filters` that no event has had so far.'),
  }),
)

export const testSchema = named('EndpointTest', () =>
  z.strictObject({
    result: z.enum(['accepted', 'rejected', 'failed']),
    status: wholeNumber().nullable().describe('Null: there was no answer; see `reason`.'),
    reason: failureReason().nullable(),
    durationMs: wholeNumber(),
    address: z.string().nullable().describe('The IP address that took or refused the connection; null: there was no connection.'),
    ...answerStart(),
  }),
)

const BODY_BYTES_MAX = 256 * 1024

export type EndpointAnswer = AnswerOf<typeof endpointSchema>
export type InspectedEndpointAnswer = AnswerOf<typeof inspectedEndpointSchema>
export type KeyedEndpointAnswer = AnswerOf<typeof keyedEndpointSchema>

const one = { params: { id: idOf('endpoint') } } as const

/** Endpoints. A key is shown once, in the answer to the request that made it. */
export const ENDPOINTS_ROUTES = [
  listRoute('/relay/endpoints', {
    summary: 'List endpoints',
    description: 'In the order in which they were added.',
    query: query({ ...page, cursor: count.default(0), name: text.describe('Only the endpoint with this name.') }),
    items: ['endpoints', endpointSchema],
    read: ({ manageEndpoints }, asked) => manageEndpoints.list(asked),
    present: presentEndpoint,
  }),
  callRoute('post', '/relay/endpoints', {
    summary: 'Add an endpoint',
    description: 'If you leave `sharedKey` out, the relay makes one and shows it in this answer only.',
    body: jsonBody(() => newEndpointSchema, { name: 'warehouse', url: 'http://127.0.0.1:9/parcel-events' }, BODY_BYTES_MAX),
    answers: { 201: ['The endpoint, with its key', keyedEndpointSchema, location] },
    problems: ['endpoint_exists', 'feed_gone'],
    answer: async ({ manageEndpoints }, { by, body }) => {
      const added = await manageEndpoints.add(body, by)
      return [201, presentKeyed(added), `/relay/endpoints/${added.state.endpoint.id}`]
    },
  }),
  callRoute('get', '/relay/endpoints/:id', {
    ...one,
    summary: 'Show an endpoint',
    description: 'With the failures of the last 30 days, grouped by equal answers.',
    answers: { 200: ['The endpoint', inspectedEndpointSchema] },
    problems: ['not_found'],
    answer: async ({ manageEndpoints }, { param }) => [200, presentInspected(await manageEndpoints.find(param('id')))],
  }),
  callRoute('patch', '/relay/endpoints/:id', {
    ...one,
    summary: 'Change an endpoint',
    description: 'Members that you leave out stay as they are. A new `sharedKey` starts to replace the old one, as with `rotate`.',
    body: jsonBody(() => endpointChangeSchema, { enabled: true, concurrency: 4 }, BODY_BYTES_MAX),
    answers: { 200: ['The endpoint, with its key if it is new', keyedEndpointSchema] },
    problems: ['not_found', 'endpoint_exists', 'endpoint_read_only'],
    answer: async ({ manageEndpoints }, { by, param, body }) => [200, presentKeyed(await manageEndpoints.change(param('id'), body, by))],
  }),
  callRoute('delete', '/relay/endpoints/:id', {
    ...one,
    summary: 'Remove an endpoint',
    description: 'Its waiting deliveries are cancelled.',
    answers: { 204: ['The endpoint is removed'] },
    problems: ['not_found', 'endpoint_read_only'],
    answer: async ({ manageEndpoints }, { by, param }) => {
      await manageEndpoints.remove(param('id'), by)
      return [204]
    },
  }),
  callRoute('post', '/relay/endpoints/:id/rotate', {
    ...one,
    summary: 'Replace the key of an endpoint',
    description:
      'Both keys sign for 24 h, then only the new one. `"at": "now"` ends the 24 h at once. Without a body the relay makes a key and shows it once.',
    body: { optional: true, ...jsonBody(() => keyRotationSchema, { sharedKey: null, at: 'now' }, BODY_BYTES_MAX) },
    answers: { 200: ['The endpoint, with its key if it is new', keyedEndpointSchema] },
    problems: ['not_found', 'endpoint_read_only', 'not_rotating'],
    answer: async ({ manageEndpoints }, { by, param, body }) => [200, presentKeyed(await manageEndpoints.rotate(param('id'), body, by))],
  }),
  callRoute('post', '/relay/endpoints/:id/retry', {
    ...one,
    summary: 'Attempt everything that waits for an endpoint now',
    answers: { 202: ['Everything that waits is due', endpointSchema] },
    problems: ['not_found', 'not_retryable'],
    answer: async ({ manageEndpoints }, { by, param }) => [202, presentEndpoint(await manageEndpoints.retry(param('id'), by))],
  }),
  callRoute('post', '/relay/endpoints/:id/test', {
    ...one,
    summary: 'Send an endpoint a test push',
    description: 'It is signed like any push, and marked `relay-test: true`. It is not recorded.',
    answers: { 200: ['What the endpoint answered', testSchema] },
    problems: ['not_found'],
    answer: async ({ manageEndpoints }, { by, param }) => [200, presentTest(await manageEndpoints.test(param('id'), by))],
  }),
]

function presentKeyed({ state, sharedKey, warnings }: KeyedEndpoint): KeyedEndpointAnswer {
  return {
    ...presentEndpoint(state),
    ...(sharedKey === null ? {} : { sharedKey }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(describeWarning) }),
  }
}

function presentInspected({ failures, fingerprints, keyFrom, ...view }: InspectedEndpoint): InspectedEndpointAnswer {
  return {
    ...presentEndpoint(view),
    keyFingerprint: fingerprints?.current ?? null,
    nextKeyFingerprint: fingerprints?.next ?? null,
    keyFrom,
    failures: failures.map((group) => ({
      ...presentFailure(group),
      count: group.count,
      firstAt: presentInstant(group.firstAtMs),
      lastAt: presentInstant(group.lastAtMs),
    })),
  }
}

function presentEndpoint(view: EndpointView): EndpointAnswer {
  const { endpoint, beganAtMs, origin, disabled, disabledSince, health, keys, queuedTo, nextProbe, limit, backlog, lastFailure } = view
  return {
    ...presentSettings(endpoint),
    beganAt: presentInstant(beganAtMs),
    origin: origin === 'config' ? origin : 'managed',
    state: disabled !== null ? 'disabled' : health.probing !== null ? 'failing' : 'active',
    disabledBecause: disabled,
    disabledSince: presentInstant(disabledSince?.atMs ?? null),
    disabledBy: disabledSince?.by ?? null,
    waiting: backlog.waiting,
    oldestWaitingSince: presentInstant(backlog.oldestAtMs),
    givenUp: backlog.dead,
    lastSuccessAt: presentInstant(health.lastSuccessAtMs),
    lastFailure: lastFailure === null ? null : { at: presentInstant(lastFailure.lastAtMs), ...presentFailure(lastFailure) },
    failingSince: presentInstant(health.failingSinceMs),
    limitPerSecond: limit?.perSecond ?? null,
    waitsUntil: presentInstant(limit?.waitUntilMs ?? null),
    nextProbeAt: presentInstant(nextProbe?.atMs ?? null),
    newEventProbeAt: presentInstant(nextProbe?.ofNewMs ?? null),
    keySince: presentInstant(keys?.currentSinceMs ?? null),
    nextKeyFrom: presentInstant(keys?.next?.fromMs ?? null),
    queuedTo,
  }
}

function presentFailure({ status, reason, answerStart, deliveryId }: FailureGroup) {
  return { status, reason, ...presentAnswerStart(answerStart), delivery: String(deliveryId) }
}

export function presentTest(result: AttemptResult): AnswerOf<typeof testSchema> {
  return {
    result: result.kind,
    status: result.kind === 'failed' ? null : result.status,
    reason: result.kind === 'failed' ? result.reason : null,
    durationMs: Math.round(result.durationMs),
    address: result.address ?? null,
    ...presentAnswerStart(result.answerStart),
  }
}
