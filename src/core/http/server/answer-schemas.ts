import type { Context } from 'koa'
import { z } from 'zod'
import { PROBLEMS, type ProblemCode } from './problems.ts'
import type { RouteAnswer, RouteRow } from './route.ts'

// Only the OpenAPI document and tests need schemas of answers, so functions make them on demand to save memory.

/** Gives a schema the name `id`, under which the OpenAPI document lists it. */
export function named<Schema extends z.ZodType>(id: string, make: () => Schema): () => Schema {
  let made: Schema | undefined
  return () => (made ??= make().meta({ id }))
}

/** The type of an answer with this schema. */
export type AnswerOf<Make extends () => z.ZodType> = Frozen<z.output<ReturnType<Make>>>

type Frozen<Value> = Value extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : Value extends object
    ? { readonly [Member in keyof Value]: Frozen<Value[Member]> }
    : Value

export type PageAnswer<Name extends string, Item> = Readonly<Record<Name, readonly Item[]>> & { readonly next: string | null }

export const instant = () => z.iso.datetime()

export const wholeNumber = () => z.int().min(0)

/** An id that the relay has assigned by counting. */
export const numberedId = () => z.string().regex(/^\d{1,15}$/)

/** An identifier of a parcel, in upper case, as in all answers. */
export const identifier = () => z.string().regex(/^[A-Z0-9]{4,40}$/)

export function jsonAnswer(description: string, schema: z.ZodType, headers?: z.ZodObject): RouteAnswer {
  return { description, content: { 'application/json': schema }, ...(headers === undefined ? {} : { headers }) }
}

/** A page of a list, whose items are in the member `name`. */
export function pageSchema(name: string, item: z.ZodType) {
  const next = z.string().nullable().describe('The `cursor` of the next page; null on the last.')
  return z.strictObject({ [name]: z.array(item), next })
}

export const location = () => z.object({ Location: z.string().describe('The address of the new resource') })

export const IDENTIFIER = {
  description: 'A tracking number or tracking id: 4 to 40 letters and digits, in upper or lower case.',
  schema: () => z.string(),
  example: 'AB123456789SE',
}

export function idOf(thing: string, example = '1') {
  return { description: `The id of the ${thing}.`, schema: () => z.string(), example }
}

/** The problems with which every route can answer. */
const ALWAYS: readonly ProblemCode[] = ['bad_request', 'headers_too_large', 'internal']
/** Further problems of routes that need a token. */
const WITH_TOKEN: readonly ProblemCode[] = ['unauthorized', 'forbidden', 'too_many_requests', 'storage_unavailable']
/** Further problems of routes that take a body. */
const OF_BODY: readonly ProblemCode[] = ['body_too_large']

const inputErrors = () =>
  z.array(
    z.union([
      z.strictObject({ parameter: z.string(), detail: z.string() }),
      z.strictObject({ pointer: z.string(), detail: z.string() }),
      z.strictObject({ line: wholeNumber(), reason: z.string() }),
    ]),
  )

/** The additional members of some problem documents, by code. */
const FACTS: { readonly [Code in ProblemCode]?: () => Readonly<Record<string, z.ZodType>> } = {
  bad_request: () => ({
    errors: inputErrors().optional().describe('Every problem of the query, the body or the list.'),
    watched: wholeNumber().optional(),
    failed: wholeNumber().optional(),
  }),
  body_too_large: () => ({ watched: wholeNumber().optional() }),
  storage_unavailable: () => ({ watched: wholeNumber().optional().describe('How many of the first lines of a list are watched.') }),
  not_reloadable: () => ({ problems: z.array(z.string()).optional().describe('Every mistake of the config file, with its line.') }),
  not_found: () => ({
    knownFrom: instant().optional().describe('With `asOf`: from when on something was known of the parcel.'),
    approximate: z.array(z.string()).optional().describe('With `asOf`: why something may have been known then all the same.'),
  }),
  erased: () => ({ watched: wholeNumber().optional() }),
  feed_gone: () => ({ oldestSequence: wholeNumber() }),
  feed_rewound: () => ({ lastSequence: wholeNumber() }),
}

/** The additional headers of some problem answers, by status. */
const HEADERS: Readonly<Record<number, () => z.ZodObject>> = {
  401: () => z.object({ 'WWW-Authenticate': z.literal('Bearer').optional() }),
  405: () => z.object({ Allow: z.string().describe('The methods of this address.') }),
  429: () => z.object({ 'Retry-After': z.string().describe('Seconds.') }),
  503: () => z.object({ 'Retry-After': z.string().describe('Seconds.') }),
}

function problemSchema(code: ProblemCode): z.ZodObject {
  const [status, title] = PROBLEMS[code]
  return z
    .strictObject({
      type: z.literal(`urn:parcel-relay:error:${code}`),
      title: z.literal(title),
      status: z.literal(status),
      detail: z.string().describe('What is wrong, for people.'),
      instance: z
        .string()
        .regex(/^urn:uuid:/)
        .describe('The id of this very answer; the log has it too.'),
      ...FACTS[code]?.(),
    })
    .meta({ id: `Problem.${code}` })
}

/** An answer with a problem document (RFC 9457). `id`: its name in the OpenAPI document. */
export interface ProblemAnswer extends RouteAnswer {
  readonly status: number
  readonly id: string
}

/** Creates a function that returns the problem answers of a route. Equal answers are one object, so the OpenAPI document lists them once. */
export function createProblemAnswers(): (row: RouteRow) => readonly ProblemAnswer[] {
  const schemaOf = onceEach(problemSchema)
  const made = new Map<string, ProblemAnswer>()
  const answerOf = (status: number, codes: readonly ProblemCode[]): ProblemAnswer => {
    const id = codes.join('.')
    const before = made.get(id)
    if (before !== undefined) return before
    const [first, ...others] = codes
    const headers = HEADERS[status]?.()
    const answer = {
      id,
      status,
      description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code][1].toLowerCase()}`).join('; '),
      content: { 'application/problem+json': first !== undefined && others.length === 0 ? schemaOf(first) : z.union(codes.map(schemaOf)) },
      ...(headers === undefined ? {} : { headers }),
    }
    made.set(id, answer)
    return answer
  }
  return ({ scope, problems, body }) => {
    const codes = new Set([...ALWAYS, ...(scope === null ? [] : WITH_TOKEN), ...(body === null ? [] : OF_BODY), ...problems])
    const byStatus = Map.groupBy([...codes].toSorted(), (code) => PROBLEMS[code][0])
    return [...byStatus].map(([status, ofStatus]) => answerOf(status, ofStatus))
  }
}

function onceEach<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>()
  return (key) => {
    const value = made.get(key) ?? make(key)
    made.set(key, value)
    return value
  }
}

/** Control characters except tabs, line feeds and carriage returns. */
const NO_TEXT = /(?![\t\n\r])\p{Cc}/u

/** Sends an answer of the relay's own API, which nobody may cache. */
export function presentJson<Body extends object>(ctx: Context, status: number, body: Body): void {
  ctx.status = status
  ctx.body = JSON.stringify(body)
  ctx.set('Content-Type', 'application/json')
  ctx.set('Cache-Control', 'no-store')
}

/** Returns the members for the start of a receiver's answer. If it is not text, `answerStart` is null and `answerStartBase64` has the bytes. */
export function presentAnswerStart(bytes: Uint8Array): { readonly answerStart: string | null; readonly answerStartBase64?: string } {
  const text = readText(bytes)
  return text === null ? { answerStart: null, answerStartBase64: Buffer.from(bytes).toString('base64') } : { answerStart: text }
}

/** Decodes UTF-8. A character that is cut off at the end is left out. Null: the bytes are not UTF-8, or have control characters. */
function readText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return NO_TEXT.test(text) ? null : text
  } catch {
    return null
  }
}

export function presentInstant(atMs: number): string
export function presentInstant(atMs: number | null): string | null
export function presentInstant(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}
