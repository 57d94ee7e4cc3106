import type { FailureGroup } from '../../domain/delivery/dispatch-round.ts'
import { endpointChangeSchema, keyRotationSchema, newEndpointSchema, presentSettings } from '../../domain/delivery/endpoint-settings.ts'
import type { EndpointView, InspectedEndpoint } from '../../flow/delivery/endpoint-queries.ts'
import { describeWarning, type KeyedEndpoint } from '../../flow/delivery/manage-endpoints.ts'
import { type AnswerOf, idOf, location } from '../server/answer-schemas.ts'
import { presentAnswerStart, presentInstant } from '../server/present.ts'
import { count, page, query, text } from '../server/query.ts'
import { callRoute, jsonBody, listRoute } from '../server/route-shapes.ts'
import { endpointSchema, inspectedEndpointSchema, keyedEndpointSchema, testSchema } from './endpoint-schemas.ts'
import { presentTest } from './present-test.ts'

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
