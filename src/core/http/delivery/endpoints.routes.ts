import type { FailureGroup } from '../../domain/delivery/dispatch-round.ts'
import { endpointChangeSchema, keyRotationSchema, newEndpointSchema, presentSettings } from '../../domain/delivery/endpoint-settings.ts'
import type { EndpointView, InspectedEndpoint } from '../../flow/delivery/endpoint-view.ts'
import { describeWarning } from '../../flow/delivery/filter-warnings.ts'
import type { KeyedEndpoint } from '../../flow/delivery/manage-endpoints.ts'
import { type AnswerOf, idOf, jsonAnswer, location, pageAnswer } from '../server/answer-schemas.ts'
import { presentAnswerStart, presentCreated, presentInstant, presentJson } from '../server/present.ts'
import { count, NO_QUERY, page, query, text } from '../server/query.ts'
import { apiRoute } from '../server/route.ts'
import type { UseCases } from '../use-cases.ts'
import { endpointSchema, inspectedEndpointSchema, keyedEndpointSchema, testSchema } from './endpoint-schemas.ts'
import { presentTest } from './present-test.ts'

const BODY_BYTES_MAX = 256 * 1024

export type EndpointAnswer = AnswerOf<typeof endpointSchema>
export type InspectedEndpointAnswer = AnswerOf<typeof inspectedEndpointSchema>
export type KeyedEndpointAnswer = AnswerOf<typeof keyedEndpointSchema>

const admin = { scope: 'admin', query: NO_QUERY } as const
const one = { ...admin, params: { id: idOf('endpoint') }, example: { path: { id: '1' } } } as const

/** Endpoints. A key is shown once, in the answer to the request that made it. */
export const ENDPOINTS_ROUTES = [
  apiRoute({
    method: 'get',
    path: '/relay/endpoints',
    summary: 'List endpoints',
    description: 'In the order in which they were added.',
    scope: 'admin',
    params: {},
    query: query({ ...page, cursor: count.default(0), name: text.describe('Only the endpoint with this name.') }),
    body: null,
    answers: () => ({ 200: pageAnswer('endpoints', endpointSchema()) }),
    problems: [],
    example: { path: {} },
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, call) => {
        const { endpoints, next } = await manageEndpoints.list(call.query)
        presentJson(ctx, 200, { endpoints: endpoints.map(presentEndpoint), next })
      },
  }),
  apiRoute({
    ...admin,
    method: 'post',
    path: '/relay/endpoints',
    summary: 'Add an endpoint',
    description: 'If you leave `sharedKey` out, the relay makes one and shows it in this answer only.',
    params: {},
    body: {
      bytesMax: BODY_BYTES_MAX,
      content: {
        'application/json': { schema: () => newEndpointSchema, example: { name: 'warehouse', url: 'http://127.0.0.1:9/parcel-events' } },
      },
    },
    answers: () => ({ 201: jsonAnswer('The endpoint, with its key', keyedEndpointSchema(), location()) }),
    problems: ['endpoint_exists', 'feed_gone'],
    example: { path: {} },
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, { by, body }) => {
        const added = await manageEndpoints.add(body, by)
        presentCreated(ctx, `/relay/endpoints/${added.state.endpoint.id}`, presentKeyed(added))
      },
  }),
  apiRoute({
    ...one,
    method: 'get',
    path: '/relay/endpoints/:id',
    summary: 'Show an endpoint',
    description: 'With the failures of the last 30 days, grouped by equal answers.',
    body: null,
    answers: () => ({ 200: jsonAnswer('The endpoint', inspectedEndpointSchema()) }),
    problems: ['not_found'],
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, { param }) =>
        presentJson(ctx, 200, presentInspected(await manageEndpoints.find(param('id')))),
  }),
  apiRoute({
    ...one,
    method: 'patch',
    path: '/relay/endpoints/:id',
    summary: 'Change an endpoint',
    description: 'Members that you leave out stay as they are. A new `sharedKey` starts to replace the old one, as with `rotate`.',
    body: {
      bytesMax: BODY_BYTES_MAX,
      content: { 'application/json': { schema: () => endpointChangeSchema, example: { enabled: true, concurrency: 4 } } },
    },
    answers: () => ({ 200: jsonAnswer('The endpoint, with its key if it is new', keyedEndpointSchema()) }),
    problems: ['not_found', 'endpoint_exists', 'endpoint_read_only'],
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, { by, param, body }) =>
        presentJson(ctx, 200, presentKeyed(await manageEndpoints.change(param('id'), body, by))),
  }),
  apiRoute({
    ...one,
    method: 'delete',
    path: '/relay/endpoints/:id',
    summary: 'Remove an endpoint',
    description: 'Its waiting deliveries are cancelled.',
    body: null,
    answers: () => ({ 204: { description: 'The endpoint is removed' } }),
    problems: ['not_found', 'endpoint_read_only'],
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, { by, param }) => {
        await manageEndpoints.remove(param('id'), by)
        ctx.body = null
        ctx.status = 204
      },
  }),
  apiRoute({
    ...one,
    method: 'post',
    path: '/relay/endpoints/:id/rotate',
    summary: 'Replace the key of an endpoint',
    description:
      'Both keys sign for 24 h, then only the new one. `"at": "now"` ends the 24 h at once. Without a body the relay makes a key and shows it once.',
    body: {
      optional: true,
      bytesMax: BODY_BYTES_MAX,
      content: { 'application/json': { schema: () => keyRotationSchema, example: { sharedKey: null, at: 'now' } } },
    },
    answers: () => ({ 200: jsonAnswer('The endpoint, with its key if it is new', keyedEndpointSchema()) }),
    problems: ['not_found', 'endpoint_read_only', 'not_rotating'],
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, { by, param, body }) =>
        presentJson(ctx, 200, presentKeyed(await manageEndpoints.rotate(param('id'), body, by))),
  }),
  apiRoute({
    ...one,
    method: 'post',
    path: '/relay/endpoints/:id/retry',
    summary: 'Attempt everything that waits for an endpoint now',
    description: '',
    body: null,
    answers: () => ({ 202: jsonAnswer('Everything that waits is due', endpointSchema()) }),
    problems: ['not_found', 'not_retryable'],
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, { by, param }) =>
        presentJson(ctx, 202, presentEndpoint(await manageEndpoints.retry(param('id'), by))),
  }),
  apiRoute({
    ...one,
    method: 'post',
    path: '/relay/endpoints/:id/test',
    summary: 'Send an endpoint a test push',
    description: 'It is signed like any push, and marked `relay-test: true`. It is not recorded.',
    body: null,
    answers: () => ({ 200: jsonAnswer('What the endpoint answered', testSchema()) }),
    problems: ['not_found'],
    answer:
      ({ manageEndpoints }: Pick<UseCases, 'manageEndpoints'>) =>
      async (ctx, { by, param }) =>
        presentJson(ctx, 200, presentTest(await manageEndpoints.test(param('id'), by))),
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
