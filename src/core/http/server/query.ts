import { z } from 'zod'
import { DURATION, parseDuration } from '../../domain/amounts.ts'
import { readInput } from '../../domain/read-input.ts'

const COUNT = /^\d{1,15}$/
const TEXT_LENGTH_MAX = 1000

/** Makes a schema that accepts these parameters and no others. */
export function query<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape)
}

export const NO_QUERY = query({})

/** Accepts and ignores every parameter. It serves the carrier's API and the routes without a token. */
export const ANY_QUERY = z.object({})

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
export function readQuery<Query>(schema: z.ZodType<Query>, queryString: string): Query {
  const given = new Map<string, string | readonly string[]>()
  for (const [name, value] of new URLSearchParams(queryString)) {
    const before = given.get(name)
    given.set(name, before === undefined ? value : [before, value].flat())
  }
  return readInput('query', schema, Object.fromEntries(given))
}
