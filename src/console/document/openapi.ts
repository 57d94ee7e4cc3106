import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathItemObject, type ZodOpenApiResponseObject } from 'zod-openapi'
import { EXAMPLE_EVENT, eventSchema } from '../../core/http/ingest/webhook.routes.ts'
import { createProblemAnswers } from '../../core/http/server/answer-schemas.ts'
import type { Capability, PathParameter, RouteAnswer, RouteRow } from '../../core/http/server/route.ts'
import type { OperatorEventTable } from '../events/operator-events.ts'

const ABOUT = `The relay receives, polls, merges, serves and relays a carrier's parcel status.

Two listeners: the public one, for the carrier, has \`/webhooks/status\` and \`/healthz\`; everything else is on the internal one. Lists take \`limit\` and
\`cursor\`, which is the \`next\` of the previous page. Under /relay an unknown parameter is a 400 that names it. Errors are \`application/problem+json\` (RFC 9457).`

const PUBLIC = { servers: [{ url: '.', description: 'The public listener' }] }

/** Makes the document of the API (OpenAPI 3.1) from the table of routes. `npm run docs` calls it; a running relay does not. */
interface DocumentOptions {
  readonly version: string
  readonly capabilities: readonly Capability[]
  readonly events: Pick<OperatorEventTable, 'posted'>
}

function createApiDocument({ version, capabilities, events }: DocumentOptions) {
  const respond = createProblemResponses()
  const paths = new Map<string, ZodOpenApiPathItemObject>()
  for (const capability of capabilities) {
    for (const row of capability.routes) {
      const path = row.path.replace(/:(\w+)/g, '{$1}')
      paths.set(path, { ...paths.get(path), [row.method]: operationOf(row, capability, respond) })
    }
  }
  return createDocument(
    {
      openapi: '3.1.0',
      info: { title: 'Parcel status relay', version, description: ABOUT, license: { name: 'MIT', identifier: 'MIT' } },
      servers: [{ url: '.', description: 'The internal listener, from which this document came' }],
      tags: capabilities.map(({ name, about }) => ({ name, description: about })),
      paths: Object.fromEntries(paths),
      webhooks: {
        parcelEvent: { post: pushOperation('parcelEvent', endpointPush()) },
        operatorEvent: { post: pushOperation('operatorEvent', operatorPush(events)) },
      },
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description: 'From `POST /auth/token`. Its app has the scopes that the config gives it.',
          },
          signature: {
            type: 'apiKey',
            in: 'header',
            name: 'x-service-hmac-sha256',
            description: 'The HMAC-SHA256 of the exact body, in Base64.',
          },
        },
      },
    },
    { override: ({ jsonSchema }) => plain(jsonSchema) },
  )
}

/** Removes what tells a reader nothing: limits that all whole numbers in JSON have, and a pattern if there is a format. */
function plain(schema: { maximum?: unknown; minimum?: unknown; format?: unknown; pattern?: unknown }): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.format !== undefined) delete schema.pattern
}

type Responses = readonly (readonly [status: string, response: ZodOpenApiResponseObject])[]

/** Makes one response for each problem. All routes share it, so that the document has it only once. */
function createProblemResponses(): (row: RouteRow) => Responses {
  const problemsOf = createProblemAnswers()
  const made = new Map<string, ZodOpenApiResponseObject>()
  return (row) =>
    problemsOf(row).map(({ id, status, ...answer }) => {
      const response = made.get(id) ?? { ...responseOf(answer), id }
      made.set(id, response)
      return [String(status), response]
    })
}

function operationOf(row: RouteRow, { name }: Capability, problemResponses: (row: RouteRow) => Responses): ZodOpenApiOperationObject {
  const { method, path, summary, description, scope, listener, body } = row
  const answers = Object.entries(row.answers()).map(([status, answer]) => [status, responseOf(answer)] as const)
  return {
    operationId: operationIdOf(row),
    tags: [name],
    summary,
    ...(description === '' ? {} : { description }),
    security: scope === null ? (path.startsWith('/webhooks') ? [{ signature: [] }] : []) : [{ token: [scope] }],
    ...(listener === 'public' ? PUBLIC : {}),
    requestParams: { path: pathParameters(row), query: queryParameters(row) },
    ...(body === null || method === 'get' ? {} : { requestBody: bodyOf(body) }),
    responses: Object.fromEntries([...problemResponses(row), ...answers]),
  }
}

function bodyOf({ optional, content }: NonNullable<RouteRow['body']>) {
  const media = Object.entries(content).map(([type, { schema, example }]) => [type, { schema: schema(), example }] as const)
  return { required: optional !== true, content: Object.fromEntries(media) }
}

/** Returns the id of an operation: `get /relay/parcels/:identifier` has the id `getRelayParcelsIdentifier`. */
function operationIdOf({ method, path }: RouteRow): string {
  return method + path.replace(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase())
}

function responseOf({ description, headers, content }: RouteAnswer): ZodOpenApiResponseObject {
  const media = Object.entries(content ?? {}).map(([type, schema]) => [type, { schema }] as const)
  return {
    description,
    ...(headers === undefined ? {} : { headers }),
    ...(media.length === 0 ? {} : { content: Object.fromEntries(media) }),
  }
}

function pathParameters({ params, example }: RouteRow): z.ZodObject {
  const examples = new Map<string, string>(Object.entries(example.path))
  const described = Object.entries<PathParameter>(params).map(([name, { schema, description }]) => [
    name,
    schema()
      .describe(description)
      .meta({ param: { example: examples.get(name) } }),
  ])
  return z.object(Object.fromEntries(described))
}

function exampleOf(given: string): string | number | boolean {
  if (given === 'true' || given === 'false') return given === 'true'
  return /^\d+$/.test(given) ? Number(given) : given
}

function queryParameters({ query, example }: RouteRow): z.ZodObject {
  const examples = new URLSearchParams(example.query)
  const described = Object.entries<z.core.$ZodType>(query.shape).map(([name, schema]) => {
    const given = examples.get(name)
    return [name, given === null ? givenOrNot(schema) : givenOrNot(schema).meta({ param: { example: exampleOf(given) } })]
  })
  return z.object(Object.fromEntries(described))
}

/** Removes null from the schema of a parameter. Null stands for a missing parameter, so nobody can send it. */
function givenOrNot(schema: z.core.$ZodType): z.ZodType {
  const whole = asSchema(schema)
  if (!(whole instanceof z.ZodDefault) || whole.def.defaultValue !== null) return whole
  const inner = asSchema(whole.unwrap())
  const value = inner instanceof z.ZodNullable ? asSchema(inner.unwrap()) : inner
  const { description } = whole
  return description === undefined ? value.optional() : value.optional().describe(description)
}

function asSchema(schema: z.core.$ZodType): z.ZodType {
  if (schema instanceof z.ZodType) return schema
  throw new TypeError('a schema of zod/mini')
}

/** Describes a request that the relay posts, and how the relay treats the answers. */
function pushOperation(id: string, { summary, description, headers, body, example }: PushedEvent): ZodOpenApiOperationObject {
  return {
    operationId: id,
    tags: ['delivery'],
    summary,
    description,
    requestParams: { header: headers },
    requestBody: { required: true, content: { 'application/json': { schema: body, example } } },
    responses: {
      '2XX': { description: 'The event is accepted, even if the body of the answer breaks off' },
      '410': { description: 'The endpoint wants no more events, so it is disabled' },
      default: {
        description: 'The event is retried on the schedule, as it is without an answer. A `Retry-After` with 429 or 503 is obeyed',
      },
    },
  }
}

export function presentApiDocument(options: DocumentOptions): string {
  return `${JSON.stringify(createApiDocument(options), null, 2)}\n`
}

/** A request that the relay posts, described for the API document. */
interface PushedEvent {
  readonly summary: string
  readonly description: string
  readonly headers: z.ZodObject
  readonly body: z.ZodType
  readonly example: unknown
}

const signature = () =>
  z.string().describe("The HMAC-SHA256 of the exact body, in Base64, with the endpoint's `sharedKey` as its UTF-8 bytes.")

const pushHeaders = () => ({
  'x-service-hmac-sha256': signature(),
  'x-service-hmac-sha256-next': signature().optional().describe('The same with the new key, while a key is being replaced.'),
  'webhook-id': z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,128}$/)
    .describe('The id of the event, the same for every attempt and replay.'),
  'relay-sequence': z.string().regex(/^\d+$/).describe('The position of the event in the feed.'),
  'relay-previous-sequence': z
    .string()
    .regex(/^\d+$/)
    .describe('The sequence of the previous event of the same parcel that was queued for you; 0: there was none.'),
})

const endpointPush = (): PushedEvent => ({
  summary: 'An event of a parcel, to each endpoint whose filters it passes',
  description:
    "The carrier's own push, byte for byte; if only a poll brought the event, a body in the same shape. It is sent at least once, and in order for each parcel: the next event of a parcel is not sent until the one before it was accepted or given up.",
  headers: z.object({
    ...pushHeaders(),
    'webhook-timestamp': z.string().optional().describe('With `signature: standard-webhooks`, as Standard Webhooks defines it.'),
    'webhook-signature': z.string().optional().describe('With `signature: standard-webhooks`, as Standard Webhooks defines it.'),
    'relay-test': z.literal('true').optional().describe('A test push of an operator: check the signature and do nothing else.'),
  }),
  body: eventSchema(),
  example: EXAMPLE_EVENT,
})

const operatorPush = ({ posted }: DocumentOptions['events']): PushedEvent => ({
  summary: 'Something that operators should know, to the address in the setting `operator`',
  description: 'Signed and retried like any delivery.',
  headers: z.object(pushHeaders()),
  body: posted(),
  example: {
    event: 'endpoint_failing',
    endpoint: { id: '1', name: 'shop' },
    since: '2026-03-01T09:45:00.000Z',
    failure: { status: 401, reason: null, answer: 'signature does not match' },
    at: '2026-03-01T10:00:00.250Z',
  },
})
