import { z } from 'zod'
import { AppError } from './errors.ts'
import { isObject } from './json-body.ts'
import { suggestName } from './text.ts'

/** Where input comes from: a JSON body or query parameters. A query parameter is a string or, if it was repeated, a list of strings. */
export type InputKind = 'body' | 'query'

/** One error, with a JSON pointer into the body (RFC 6901) or the name of the query parameter. */
type InputError = { readonly detail: string } & ({ readonly pointer: string } | { readonly parameter: string })

type Path = readonly PropertyKey[]

const ERRORS_SHOWN = 20
const NAME_LENGTH_SHOWN = 100

/**
 * Parses input. The messages of a schema continue a sentence that begins with the name of a field, for example "must be a whole number".
 * Throws `bad_request` with a sentence for each error. Its fact `errors` lists the errors for programs. Messages do not repeat the input,
 * because it may be a secret key.
 */
export function readInput<T>(kind: InputKind, schema: z.ZodType<T>, value: unknown): T {
  const namesAt = new Map<string, readonly string[]>()
  const result = schema.safeParse(value, {
    jitless: true,
    error: (issue) => {
      if (issue.code === 'unrecognized_keys' && issue.inst instanceof z.ZodObject) {
        namesAt.set(JSON.stringify(issue.path ?? []), Object.keys(issue.inst.shape))
      }
      return describe(kind, issue)
    },
  })
  if (result.success) return result.data
  const errors = result.error.issues.flatMap((issue): readonly InputError[] => {
    if (issue.code !== 'unrecognized_keys')
      return [errorAt(kind, issue.path, endSentence(`${subjectOf(kind, issue.path)} ${issue.message}`))]
    const known = namesAt.get(JSON.stringify(issue.path)) ?? []
    return issue.keys.map((key) => errorAt(kind, [...issue.path, key], describeUnknown(kind, [...issue.path, key], known)))
  })
  throw new AppError('bad_request', sentencesOf(errors), { facts: { errors: errors.slice(0, ERRORS_SHOWN) } })
}

/** Returns an error such as `readInput` throws, for a problem that a schema cannot find. `name`: the member or parameter. `detail`: a sentence. */
export function wrongInput(kind: InputKind, name: string, detail: string): AppError {
  return new AppError('bad_request', detail, { facts: { errors: [errorAt(kind, [name], detail)] } })
}

const PROTO = '__proto__'

/** Lets a schema of an object whose members have free names refuse `__proto__`, which zod would leave out without a word. `error`: as of other names that it refuses. */
export function refusingProto<Schema extends z.ZodType>(schema: Schema, error: string) {
  return z.preprocess((given, issues) => {
    if (isObject(given) && Object.hasOwn(given, PROTO)) issues.addIssue({ code: 'custom', path: [PROTO], message: error })
    return given
  }, schema)
}

function sentencesOf(errors: readonly InputError[]): string {
  const more = errors.length - ERRORS_SHOWN
  const shown = errors.slice(0, ERRORS_SHOWN).map(({ detail }) => detail)
  return [...shown, ...(more > 0 ? [`${more} more things are wrong.`] : [])].join(' ')
}

function endSentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`
}

function errorAt(kind: InputKind, path: Path, detail: string): InputError {
  return kind === 'query' ? { parameter: dotted(path), detail } : { pointer: pointerOf(path), detail }
}

function describeUnknown(kind: InputKind, path: Path, known: readonly string[]): string {
  const what = kind === 'query' ? 'parameter' : 'member'
  const near = suggestName(String(path.at(-1)), known)
  if (near !== null) return `There is no ${what} "${dotted(path)}" here; did you mean "${dotted([...path.slice(0, -1), near])}"?`
  const others =
    known.length === 0 ? 'none is accepted' : known.length === 1 ? `there is only ${known[0]}` : `there are ${known.join(', ')}`
  return `There is no ${what} "${dotted(path)}" here; ${others}.`
}

function subjectOf(kind: InputKind, path: Path): string {
  if (path.length > 0) return dotted(path)
  return kind === 'query' ? 'The query' : 'The body'
}

/** Describes an issue for which the schema has no message. */
function describe(kind: InputKind, issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined && issue.code !== 'unrecognized_keys') return `is missing: it ${demand(issue)}`
  if (kind === 'query' && Array.isArray(issue.input)) return 'must be given only once'
  return demand(issue)
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a JSON object',
  array: 'a list',
}

function demand(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') return `must be ${TYPES[String(issue.expected)] ?? 'something else'}`
  if (issue.code === 'invalid_value' && Array.isArray(issue.values)) return demandOneOf(issue.values.map(String), issue.input)
  if (issue.code === 'too_small' && issue.origin === 'string' && issue.minimum === 1) return 'must not be empty'
  if (issue.code === 'too_small') return `must ${bound(issue.origin, `at least ${issue.minimum}`)}`
  if (issue.code === 'too_big') return `must ${bound(issue.origin, `at most ${issue.maximum}`)}`
  return 'has the wrong format'
}

function demandOneOf(values: readonly string[], input: unknown): string {
  const near = typeof input === 'string' ? suggestName(input, values) : null
  return `must be ${values.length === 1 ? '' : 'one of '}${values.join(', ')}${near === null ? '' : `; did you mean ${near}?`}`
}

function bound(origin: unknown, much: string): string {
  if (origin === 'string') return `have ${much} characters`
  if (origin === 'array') return `have ${much} values`
  return `be ${much}`
}

function dotted(path: Path): string {
  return path.map(String).join('.').slice(0, NAME_LENGTH_SHOWN)
}

function pointerOf(path: Path): string {
  const segments = path.map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`)
  return `#${segments.join('')}`.slice(0, NAME_LENGTH_SHOWN)
}

/** Reads some of a few names, in their order. */
export function someOf<const Name extends string>(names: readonly Name[]) {
  const some = `one or more of ${names.join(', ')}`
  return z
    .array(z.enum(names, { error: `must be one of ${names.join(', ')}` }), { error: `must be a list of ${some}` })
    .min(1, { error: `must name ${some}` })
    .transform((given): readonly Name[] => names.filter((name) => given.includes(name)))
}
