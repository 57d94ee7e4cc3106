import { z } from 'zod'
import type { RouteAnswer } from './route.ts'

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
