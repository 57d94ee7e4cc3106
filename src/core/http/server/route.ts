import type { Context } from 'koa'
import { z } from 'zod'
import type { Actor } from '../../domain/admin/operator-action.ts'
import { DURATION, parseDuration } from '../../domain/amounts.ts'
import { readInput } from '../../domain/read-input.ts'
import type { App, Scope } from '../../flow/admin/tokens/authenticate.ts'
import type { Authorize } from './authorize.ts'
import type { ProblemCode } from './problems.ts'
import type { AddressOf } from './request-headers.ts'
import { readJson, refuseOtherTypes } from './text-body.ts'

const COUNT = /^\d{1,15}$/
const TEXT_LENGTH_MAX = 1000

/** Makes a schema that accepts these parameters and no others. */
export function query<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape)
}

export const NO_QUERY = query({})

/** Accepts and ignores every parameter. It serves the carrier's API and the routes without a token. */
const ANY_QUERY = z.object({})

/** Lets the OpenAPI document show a parameter as a number or a boolean, although it arrives as text. */
function shownAs(shown: { readonly type: 'integer' | 'boolean'; readonly minimum?: number; readonly maximum?: number }) {
  const override = ({ jsonSchema }: { readonly jsonSchema: { pattern?: unknown; enum?: unknown } }) => {
    delete jsonSchema.pattern
    delete jsonSchema.enum
    Object.assign(jsonSchema, shown)
  }
  return { override }
}

export function whole(least: number, most: number) {
  const error =
    most === Number.MAX_SAFE_INTEGER ? `must be a whole number of at least ${least}` : `must be a whole number from ${least} to ${most}`
  return z
    .string()
    .regex(COUNT, { error, abort: true })
    .transform(Number)
    .pipe(z.int({ error }).min(least, { error }).max(most, { error }))
    .meta(shownAs({ type: 'integer', minimum: least, maximum: most }))
}

/** A sequence number of the feed, or an id that the relay has assigned. */
export const count = whole(0, Number.MAX_SAFE_INTEGER)

export function oneOf<const Value extends string>(values: readonly Value[]) {
  return z.enum(values).nullable().default(null)
}

export const text = z.string().max(TEXT_LENGTH_MAX).nullable().default(null)

/** A parameter that `readText` parses. If `readText` returns null, the parameter is refused with `error`. */
export function read<Value>(readText: (text: string) => Value | null, error: string) {
  return z
    .string()
    .max(TEXT_LENGTH_MAX)
    .transform((given, context) => {
      const value = readText(given)
      if (value === null) context.addIssue({ code: 'custom', message: error })
      return value
    })
    .nullable()
    .default(null)
}

/** A time with its zone, parsed to epoch milliseconds. */
export const instant = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2026-03-01T10:00:00Z' })
  .transform((text) => Date.parse(text))
  .nullable()
  .default(null)

export const flag = z
  .enum(['true', 'false'])
  .transform((value) => value === 'true')
  .default(false)
  .meta(shownAs({ type: 'boolean' }))

export function durationMs(mostSeconds: number) {
  const error = `must be a duration such as 30s, and at most ${mostSeconds}s`
  return z
    .string()
    .regex(DURATION, { error, abort: true })
    .transform(parseDuration)
    .pipe(z.number({ error }).max(mostSeconds * 1000, { error }))
}

/** The parameters of every list. */
export const page = {
  limit: whole(1, 500).default(100).describe('The most to show; 100 if it is left out.'),
  cursor: text.describe('The `next` of the previous page.'),
}

/** Parses a query string. Throws `bad_request`, which names every wrong or unknown parameter. */
function readQuery<Query>(schema: z.ZodType<Query>, queryString: string): Query {
  const given = new Map<string, string | readonly string[]>()
  for (const [name, value] of new URLSearchParams(queryString)) {
    const before = given.get(name)
    given.set(name, before === undefined ? value : [before, value].flat())
  }
  return readInput('query', schema, Object.fromEntries(given))
}

export type WithParams = Context & { params: Record<string, string> }

/** The names of the variable parts of a path: `id` of `/relay/jobs/:id`. */
export type ParamOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

/** A variable part of a path, described for the OpenAPI document. The flow behind the route checks its value. */
export interface PathParameter {
  readonly description: string
  /** Called only to make the OpenAPI document, because this schema checks no request. */
  readonly schema: () => z.ZodString
}

/** An answer with one status: its headers, and its body by media type. */
export interface RouteAnswer {
  readonly description: string
  readonly headers?: z.ZodObject
  /** By media type; absent: there is no body. */
  readonly content?: Readonly<Record<string, z.ZodType>>
}

interface Example<Path extends string> {
  readonly path: { readonly [Name in ParamOf<Path>]: string }
  /** The query without its question mark; absent: none. */
  readonly query?: string
}

/** The body by media type, with an example: a text, or a value that is sent as JSON. */
type BodyContent = Readonly<Record<string, { readonly schema: () => z.ZodType; readonly example: unknown }>>

export interface RouteBody {
  readonly optional?: true
  /** The largest body, in bytes. Null: a setting gives the limit. */
  readonly bytesMax: number | null
  readonly content: BodyContent
}

/** The description of a route for the OpenAPI document. No member is optional, so that none can be forgotten. */
interface Described<Path extends string> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  readonly path: Path
  /** A few words, without a full stop at the end. */
  readonly summary: string
  /** Markdown; `''`: the summary says everything. */
  readonly description: string
  readonly params: { readonly [Name in ParamOf<Path>]: PathParameter }
  readonly query: z.ZodObject
  readonly body: RouteBody | null
  /** Returns the answers by status, without the problems. Called only to make the OpenAPI document, so that a relay builds no schemas. */
  readonly answers: () => Readonly<Record<number, RouteAnswer>>
  /** The problems with which this route can answer, in addition to the problems of every route. */
  readonly problems: readonly ProblemCode[]
  readonly example: Example<Path>
}

/** A row of the table of routes, without its handler. */
export interface RouteRow extends Described<`/${string}`> {
  /** The scope that a token must have. Null: the route needs no token. */
  readonly scope: Scope | null
  readonly listener: 'internal' | 'public' | 'both'
}

export interface Route<Ports> extends RouteRow {
  readonly handle: (ports: Ports) => (ctx: WithParams, next: () => Promise<unknown>) => unknown
}

export interface ApiCall<Name extends string, Query> {
  readonly app: App
  /** The app and its address, for the audit trail. */
  readonly by: Actor
  readonly query: Query
  /** Returns a variable part of the path, as raw text. */
  readonly param: (name: Name) => string
  /** The parsed JSON body; undefined: there was none, or the route reads it itself. */
  readonly body: unknown
}

/** A row under /relay. Its schema checks the query, and refuses parameters that it does not list. */
interface ApiRow<Path extends `/relay/${string}`, Query, Ports> extends Described<Path> {
  readonly scope: Scope
  readonly query: z.ZodObject & z.ZodType<Query>
  readonly answer: (ports: Ports) => (ctx: Context, call: ApiCall<ParamOf<Path>, Query>) => Promise<void>
}

export interface WithAuthorize {
  readonly authorize: Authorize
  readonly addressOf: AddressOf
}

/** Makes a route under /relay. Most are of one of two shapes (`route-shapes.ts`); this one presents its answers itself. */
export function apiRoute<const Path extends `/relay/${string}`, Query, Ports>(
  row: ApiRow<Path, Query, Ports>,
): Route<Ports & WithAuthorize> {
  const { answer, ...described } = row
  return { ...described, listener: 'internal', handle: (ports) => handleCall(row, ports, answer(ports)) }
}

/** Makes the handler of a route, which authorizes the request, then checks the query, then reads the body, and then calls `answer`. */
export function handleCall<Query>(
  { scope, query, body: expected }: { readonly scope: Scope; readonly query: z.ZodType<Query>; readonly body: RouteBody | null },
  { authorize, addressOf }: WithAuthorize,
  answer: (ctx: Context, call: ApiCall<string, Query>) => Promise<void>,
): (ctx: WithParams) => Promise<void> {
  const readBody = jsonReaderOf(expected)
  return async (ctx) => {
    const app = await authorize(ctx, scope)
    const by: Actor = { kind: 'app', name: app.username, address: addressOf(ctx.req) }
    const call = { app, by, query: readQuery(query, ctx.querystring), param: (name: string) => ctx.params[name] ?? '' }
    if (readBody !== null) {
      refuseOtherTypes(ctx)
      await readBody(ctx, async () => {})
    }
    await answer(ctx, { ...call, body: readBody === null ? undefined : ctx.request.body })
  }
}

/** Returns the reader of a JSON body. Null: the route takes none, or reads the body itself. */
function jsonReaderOf(body: RouteBody | null) {
  return body !== null && body.bytesMax !== null && 'application/json' in body.content ? readJson(body.bytesMax) : null
}

/** A row outside of /relay, whose handler reads the request itself: the carrier's API, and routes without a token. */
type OwnRow<Path extends `/${string}`, Ports> = Described<Path> & Pick<Route<Ports>, 'scope' | 'listener' | 'handle'>

/** What most routes that are open to everybody share: no token, no parameters that count, no body, no problems of their own. */
export const OPEN = {
  listener: 'internal',
  scope: null,
  params: {},
  query: ANY_QUERY,
  body: null,
  description: '',
  problems: [],
  example: { path: {} },
} as const

export function ownRoute<const Path extends `/${string}`, Ports>(row: OwnRow<Path, Ports>): Route<Ports> {
  return row
}

/** One area of the API. The OpenAPI document groups the routes by area. */
export interface Capability {
  readonly name: string
  readonly about: string
  readonly routes: readonly RouteRow[]
}
