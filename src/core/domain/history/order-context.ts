import { z } from 'zod'
import { readInput, refusingProto } from '../read-input.ts'

/**
 * What an app says of the order that a parcel belongs to (DOMAIN 8). The carrier knows none of it, and no carrier is sent it. The reference and
 * the labels go to endpoints, the note stays with the relay.
 */
export interface OrderContext {
  /** The customer's order number; null: none. */
  readonly reference: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly note: string | null
}

/** As the store has it. `sequence`: of the event in the feed that told the last change. */
export interface KeptContext extends OrderContext {
  readonly sequence: number
}

/** What is said of the order of a parcel from now on. */
export interface ContextChange extends OrderContext {
  readonly parcelId: number
}

export const NO_CONTEXT: OrderContext = { reference: null, labels: {}, note: null }

const TEXT_CHARS_MAX = 100
const NOTE_CHARS_MAX = 1000
const LABELS_MAX = 16
const LABEL_NAME = /^[a-z0-9-]{1,32}$/

/** `isNote`: it may have several lines. */
function textOf(charsMax: number, isNote = false) {
  const hidden = isNote ? /(?![\t\n\r])\p{Cc}/u : /\p{Cc}/u
  return z
    .string()
    .transform((text) => text.trim())
    .refine((text) => charsOf(text) <= charsMax, { error: `must have at most ${charsMax} characters` })
    .refine((text) => text.isWellFormed() && !hidden.test(text), { error: 'must not hold control characters or half characters' })
}

function charsOf(text: string): number {
  return Array.from(text).length
}

const NAMED = 'must be named by 1 to 32 of the characters a-z, 0-9 and -'
const reference = textOf(TEXT_CHARS_MAX).refine((text) => text !== '', { error: `must have 1 to ${TEXT_CHARS_MAX} characters` })
const note = textOf(NOTE_CHARS_MAX, true).transform((text) => (text === '' ? null : text))
const namedTexts = z
  .record(z.string(), textOf(TEXT_CHARS_MAX), { error: 'must be a JSON object with the name and the value of each label' })
  .superRefine((given, context) => {
    for (const name of Object.keys(given)) if (!LABEL_NAME.test(name)) context.addIssue({ code: 'custom', path: [name], message: NAMED })
    if (Object.keys(given).length > LABELS_MAX) context.addIssue({ code: 'custom', message: `must hold at most ${LABELS_MAX} labels` })
  })

export const orderContextSchema = z.strictObject({
  reference: reference.nullable().default(null),
  labels: refusingProto(namedTexts.default({}), NAMED),
  note: note.nullable().default(null),
})

/** Reads all of a parcel's order context. What is left out is empty. Throws `bad_request`, whose message repeats no value. */
export function parseOrderContext(body: unknown): OrderContext {
  return inOrder(readInput('body', orderContextSchema, body))
}

/** Reads the number of an order as somebody has typed it. Null: no order can have it. */
export function readReference(text: string): string | null {
  return reference.safeParse(text, { jitless: true }).data ?? null
}

/** Labels in one order, so that equal ones are stored and shown alike. */
function inOrder({ labels: given, ...rest }: OrderContext): OrderContext {
  return { ...rest, labels: Object.fromEntries(Object.entries(given).sort(([a], [b]) => (a < b ? -1 : 1))) }
}

/** What a line of a list says of an order: the members that it names are replaced, the others stay. */
export type OrderPart = { readonly [Name in keyof OrderContext]?: OrderContext[Name] | undefined }

const partSchema = z
  .object({ reference: reference.nullable(), labels: refusingProto(namedTexts.optional(), NAMED), note: note.nullable() })
  .partial()

/** Reads the members of a line that are about its order. Other members are left out. A sentence without its subject: they cannot be read. */
export function parseOrderPart(members: object): OrderPart | string {
  const parsed = partSchema.safeParse(members, {
    jitless: true,
    error: (issue) => (issue.code === 'invalid_type' ? 'must be text' : undefined),
  })
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  return `has a wrong ${issue?.path.map(String).join('.').slice(0, TEXT_CHARS_MAX)}: it ${issue?.message}`
}

/** Whether a column of a list can hold the values of a label with this name. */
export function isLabelName(name: string): boolean {
  return LABEL_NAME.test(name)
}

export function withPart(before: OrderContext, part: OrderPart): OrderContext {
  const { reference: known, labels: kept, note: said } = before
  return inOrder({
    reference: part.reference === undefined ? known : part.reference,
    labels: part.labels ?? kept,
    note: part.note === undefined ? said : part.note,
  })
}

export function isSameContext(one: OrderContext, other: OrderContext): boolean {
  return (
    one.reference === other.reference &&
    one.note === other.note &&
    JSON.stringify(inOrder(one).labels) === JSON.stringify(inOrder(other).labels)
  )
}

const MEMBERS = ['reference', 'labels', 'note'] as const

/**
 * Returns what somebody has changed of an order that was shown to them, so that it takes back nothing of what others have changed meanwhile. `now`: as
 * it is. Null: others have changed the same, to something else.
 */
export function changeOf(shown: OrderContext, sent: OrderContext, now: OrderContext): OrderPart | null {
  const isSame = (name: (typeof MEMBERS)[number], one: OrderContext, other: OrderContext) =>
    JSON.stringify(inOrder(one)[name]) === JSON.stringify(inOrder(other)[name])
  const changed = MEMBERS.filter((name) => !isSame(name, sent, shown))
  if (changed.some((name) => !isSame(name, now, shown) && !isSame(name, now, sent))) return null
  return Object.fromEntries(changed.map((name) => [name, sent[name]]))
}

/** Returns what a parcel has that several were joined to: the whole of what was said last (DOMAIN 8.3). Null: nobody said anything. */
export function lastContext<Kept extends KeptContext>(contexts: readonly Kept[]): Kept | null {
  return contexts.reduce<Kept | null>((last, one) => (last === null || one.sequence > last.sequence ? one : last), null)
}

/** Returns what may be personal in it. */
export function textsOfContext({ reference, labels: given, note: said }: OrderContext): readonly string[] {
  return [reference ?? '', said ?? '', ...Object.values(given)]
}

/** What endpoints are sent of an order. */
export type SentOrder = Pick<OrderContext, 'reference' | 'labels'>

const HEADER_BYTES_MAX = 200

/**
 * Returns the headers that tell an endpoint to which order a parcel belongs (DOMAIN 8.6). Values are percent-encoded UTF-8. One that is too long is
 * left out and named.
 */
export function orderHeaders({ reference: said, labels: given }: SentOrder): Readonly<Record<string, string>> {
  const named = Object.entries(given).map(([name, value]) => [`relay-label-${name}`, encodeURIComponent(value)] as const)
  const all = [...(said === null ? [] : [['relay-reference', encodeURIComponent(said)] as const]), ...named]
  const omitted = all.filter(([, value]) => value.length > HEADER_BYTES_MAX).map(([name]) => name)
  const headers = Object.fromEntries(all.filter(([, value]) => value.length <= HEADER_BYTES_MAX))
  return omitted.length === 0 ? headers : { ...headers, 'relay-omitted': omitted.join(', ') }
}

/** Returns what filters of endpoints can name: each label by its name, and with its value. */
export function filterableLabels({ labels: given }: OrderContext): readonly string[] {
  return Object.entries(given).flatMap(([name, value]) => [name, `${name}=${value}`])
}
