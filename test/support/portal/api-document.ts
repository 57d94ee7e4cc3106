import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { z } from 'zod'

export interface Schema {
  readonly $ref?: string | undefined
  readonly type?: string | readonly string[] | undefined
  readonly enum?: readonly unknown[] | undefined
  readonly const?: unknown
  readonly format?: string | undefined
  readonly pattern?: string | undefined
  readonly anyOf?: readonly Schema[] | undefined
  readonly oneOf?: readonly Schema[] | undefined
  readonly properties?: Readonly<Record<string, Schema>> | undefined
  readonly items?: Schema | undefined
  readonly additionalProperties?: boolean | Schema | undefined
}

const schema: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    enum: z.array(z.unknown()).optional(),
    const: z.unknown().optional(),
    format: z.string().optional(),
    pattern: z.string().optional(),
    anyOf: z.array(schema).optional(),
    oneOf: z.array(schema).optional(),
    properties: z.record(z.string(), schema).optional(),
    items: schema.optional(),
    additionalProperties: z.union([z.boolean(), schema]).optional(),
  }),
)
const media = z.record(z.string(), z.looseObject({ schema, example: z.unknown().optional() }))
const response = z.looseObject({
  $ref: z.string().optional(),
  headers: z.record(z.string(), z.looseObject({ required: z.boolean().optional() })).default({}),
  content: media.optional(),
})
const parameter = z.looseObject({
  name: z.string(),
  in: z.enum(['path', 'query', 'header']),
  schema,
  example: z.unknown().optional(),
})
const operation = z.looseObject({
  parameters: z.array(parameter).default([]),
  requestBody: z.looseObject({ required: z.boolean(), content: media }).optional(),
  responses: z.record(z.string(), response),
})
const methods = z.enum(['get', 'post', 'put', 'patch', 'delete'])
const shape = z.looseObject({
  paths: z.record(z.string(), z.partialRecord(methods, operation)),
  components: z.looseObject({ schemas: z.record(z.string(), schema), responses: z.record(z.string(), response) }),
})

export type Operation = z.output<typeof operation>
type Method = z.output<typeof methods>

export const apiDocument: z.output<typeof shape> = shape.parse(JSON.parse(readFileSync('docs/openapi.json', 'utf8')))

const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false })
addFormats.default(ajv)
ajv.addSchema(apiDocument, 'api', false)

export function schemaAt($ref: string): Schema {
  const found = apiDocument.components.schemas[$ref.split('/').at(-1) ?? '']
  if (found === undefined) throw new Error(`the document has no ${$ref}`)
  return found
}

export const operations: readonly { readonly method: Method; readonly path: string; readonly operation: Operation }[] = Object.entries(
  apiDocument.paths,
).flatMap(([path, item]) =>
  methods.options.flatMap((method) => {
    const found = item[method]
    return found === undefined ? [] : [{ method, path, operation: found }]
  }),
)

/** `keys`: the path of a schema within the document. */
export function validatorAt(...keys: readonly string[]): ValidateFunction {
  const pointer = keys.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
  const validate = ajv.getSchema(`api#/${pointer}`)
  if (validate === undefined) throw new Error(`the document has nothing at ${pointer}`)
  return validate
}

interface Answered {
  readonly method: string
  /** The path with its query, if it has one. */
  readonly path: string
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const OF_NO_ROUTE = [400, 404, 405, 431]

/** Fetches a URL, and throws if the API document does not allow the answer. Streams of events are not checked. */
export async function fetchDocumented(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init)
  const { status, statusText, headers } = response
  if (headers.get('content-type') === 'text/event-stream') return response
  const bytes = await response.arrayBuffer()
  const { pathname, search } = new URL(url)
  expectConforms({ method: init.method ?? 'GET', path: `${pathname}${search}`, status, headers, text: Buffer.from(bytes).toString() })
  return new Response(bytes.byteLength === 0 ? null : bytes, { status, statusText, headers })
}

export function expectConforms(answered: Answered): void {
  const fault = faultOf(answered)
  if (fault !== null)
    throw new Error(`${answered.method} ${answered.path} ${answered.status}: ${fault}; the body is ${answered.text.slice(0, 1000)}`)
}

function faultOf({ method, path, status, headers, text }: Answered): string | null {
  const type = (headers.get('content-type') ?? '').split(';')[0]?.trim() ?? ''
  const found = operationAt(method, path)
  if (found === null) {
    if (type !== 'application/problem+json' || !OF_NO_ROUTE.includes(status)) return 'the document has no such address'
    return null
  }
  const keys = ['paths', found.path, found.method, 'responses', String(status)]
  const direct = found.operation.responses[String(status)]
  if (direct === undefined) return 'undocumented status'
  const name = direct.$ref?.split('/').at(-1)
  const documented = name === undefined ? direct : apiDocument.components.responses[name]
  if (documented === undefined) return `the document has no ${direct.$ref}`
  const at = name === undefined ? keys : ['components', 'responses', name]
  const missing = Object.entries(documented.headers).filter(([header, { required }]) => required === true && !headers.has(header))
  if (missing.length > 0) return `without the header ${missing[0]?.[0]}`
  if (documented.content === undefined || method === 'HEAD') return text === '' ? null : 'has a body, which the document does not say'
  if (documented.content[type] === undefined) return `undocumented content type ${type}`
  const validate = validatorAt(...at, 'content', type, 'schema')
  return validate(type.endsWith('json') ? JSON.parse(text) : text) ? null : `is not as documented: ${ajv.errorsText(validate.errors)}`
}

const templates = operations.map((found) => ({ found, parts: found.path.split('/') }))

/** Returns null if the document has no such path. A path with fewer variable parts wins. */
function operationAt(method: string, path: string): (typeof operations)[number] | null {
  const given = (path.split('?')[0] ?? '').split('/')
  const wanted = method === 'HEAD' ? 'get' : method.toLowerCase()
  const fitting = templates.filter(
    ({ found, parts }) =>
      found.method === wanted && parts.length === given.length && parts.every((part, at) => part.startsWith('{') || part === given[at]),
  )
  return fitting.toSorted((a, b) => variablesIn(a.parts) - variablesIn(b.parts))[0]?.found ?? null
}

function variablesIn(parts: readonly string[]): number {
  return parts.filter((part) => part.startsWith('{')).length
}
