import type { Context } from 'koa'
import type { z } from 'zod'
import type { UseCases } from '../use-cases.ts'
import { type AnswerOf, jsonAnswer, pageSchema, presentJson } from './answer-schemas.ts'
import {
  type ApiCall,
  handleCall,
  NO_QUERY,
  type ParamOf,
  type PathParameter,
  type Route,
  type RouteBody,
  type WithAuthorize,
} from './route.ts'

type ApiPath = `/relay/${string}`
type ShapedRoute = Route<UseCases & WithAuthorize>
type Query<Value> = z.ZodObject & z.ZodType<Value>

/** What both shapes share. Left out: the scope is `admin`, the summary says everything, and there are no problems of its own. */
interface Row extends Pick<ShapedRoute, 'summary'>, Partial<Pick<ShapedRoute, 'description' | 'problems'>> {
  readonly scope?: NonNullable<ShapedRoute['scope']>
  /** The query of the example, without its question mark. */
  readonly example?: string
}

interface ListRow<Asked, Name extends string, Item, Make extends () => z.ZodType> extends Row {
  readonly query: Query<Asked>
  /** The member that holds the items of a page, and the schema of an item. */
  readonly items: readonly [name: Name, schema: Make]
  readonly read: (useCases: UseCases, query: Asked) => Promise<Readonly<Record<Name, readonly Item[]>> & { readonly next: string | null }>
  readonly present: (item: Item, useCases: UseCases) => AnswerOf<Make>
}

/** Makes a route that answers with a page of a list. */
export function listRoute<Asked, const Name extends string, Item, Make extends () => z.ZodType>(
  path: ApiPath,
  { items: [name, schema], query, read, present, ...row }: ListRow<Asked, Name, Item, Make>,
): ShapedRoute {
  const answers: Answers = { 200: ['A page of the list', () => pageSchema(name, schema())] }
  return shapedRoute({ method: 'get', path, query }, { ...row, answers }, async (useCases, call) => {
    const page = await read(useCases, call.query)
    return [200, { [name]: page[name].map((item) => present(item, useCases)), next: page.next }]
  })
}

/** The answers of a call by status: what the answer is, the schema of its body, and its headers. */
type Answers = Readonly<Record<number, readonly [description: string, schema?: () => z.ZodType<object>, headers?: () => z.ZodObject]>>

/** An answer of a call: a status, the body that its schema describes, and the address of what the call has made. */
type Reply<Given extends Answers> = {
  [Status in keyof Given]: Given[Status] extends readonly [string, infer Make extends () => z.ZodType<object>, ...unknown[]]
    ? readonly [status: Status & number, body: AnswerOf<Make>, location?: string]
    : readonly [status: Status & number]
}[keyof Given]

type ExampleParameter = PathParameter & { readonly example: string }
type Params<Path extends string> = [ParamOf<Path>] extends [never]
  ? { readonly params?: undefined }
  : { readonly params: Readonly<Record<ParamOf<Path>, ExampleParameter>> }

type ShapedCall<Name extends string, Asked> = ApiCall<Name, Asked> & { readonly ctx: Context }

type CallRow<Path extends ApiPath, Asked, Given extends Answers> = Row &
  Params<Path> & {
    readonly body?: RouteBody
    readonly answers: Given
    readonly answer: (useCases: UseCases, call: ShapedCall<ParamOf<Path>, Asked>) => Promise<Reply<Given>>
  }

/** Makes a route that shows something or carries out an order, and takes no parameters in its query. */
export function callRoute<const Path extends ApiPath, const Given extends Answers>(
  method: ShapedRoute['method'],
  path: Path,
  row: CallRow<Path, unknown, Given>,
): ShapedRoute {
  return shapedRoute({ method, path, query: NO_QUERY }, row, row.answer)
}

/** Makes a route that shows something or carries out an order, as its query says. */
export function queryRoute<const Path extends ApiPath, Asked, const Given extends Answers>(
  method: ShapedRoute['method'],
  path: Path,
  row: CallRow<Path, Asked, Given> & { readonly query: Query<Asked> },
): ShapedRoute {
  return shapedRoute({ method, path, query: row.query }, row, row.answer)
}

function shapedRoute<Asked>(
  at: { readonly method: ShapedRoute['method']; readonly path: ApiPath; readonly query: Query<Asked> },
  row: Row & {
    readonly params?: Readonly<Record<string, ExampleParameter>> | undefined
    readonly body?: RouteBody
    readonly answers: Answers
  },
  answer: (useCases: UseCases, call: ShapedCall<string, Asked>) => Promise<readonly [status: number, body?: object, location?: string]>,
): ShapedRoute {
  const { summary, description = '', params = {}, scope = 'admin', body = null, problems = [], answers, example } = row
  const filled = Object.fromEntries(Object.entries(params).map(([name, parameter]) => [name, parameter.example]))
  return {
    ...at,
    listener: 'internal',
    summary,
    description,
    scope,
    params,
    body,
    problems,
    example: { path: filled, ...(example === undefined ? {} : { query: example }) },
    answers: () =>
      Object.fromEntries(
        Object.entries(answers).map(([status, [about, schema, headers]]) => [
          status,
          schema === undefined ? { description: about } : jsonAnswer(about, schema(), headers?.()),
        ]),
      ),
    handle: (ports) =>
      handleCall({ query: at.query, scope, body }, ports, async (ctx, call) => {
        const [status, answered, location] = await answer(ports, { ...call, ctx })
        if (answered === undefined) ctx.status = status
        else presentJson(ctx, status, answered)
        if (location !== undefined) ctx.set('Location', location)
      }),
  }
}

/** The body of a call, in JSON. The schema only describes it: the flow checks what was sent. */
export function jsonBody(schema: () => z.ZodType, example: unknown, bytesMax: number = 16 * 1024): RouteBody {
  return { bytesMax, content: { 'application/json': { schema, example } } }
}
