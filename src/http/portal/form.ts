import type { Context } from 'koa'
import { koaBody } from 'koa-body'
import { AppError } from '../../domain/errors.ts'

/** A form as it was sent. */
export interface Form {
  /** The first value of a field, or the empty text. */
  get(name: string): string
  /** Every value of a field. */
  all(name: string): readonly string[]
}

const BODY_BYTES_MAX = 256 * 1024
const FIELDS_MAX = 2000

const readUrlEncoded = koaBody({
  json: false,
  text: false,
  formLimit: BODY_BYTES_MAX,
  patchNode: false,
  // Names are taken as they are: no field becomes an object.
  queryString: { depth: 0, parameterLimit: FIELDS_MAX, arrayLimit: FIELDS_MAX, allowPrototypes: true, plainObjects: true },
  onError: (error, ctx) => {
    ctx.set('Connection', 'close')
    if ('status' in error && error.status === 413) throw new AppError('body_too_large', `A form may have at most ${BODY_BYTES_MAX} bytes.`)
    throw new AppError('bad_request', 'The form cannot be read.')
  },
})

/** Reads the form that a page sent. Throws `bad_request` for anything that is no such form, and `body_too_large`. */
export async function readForm(ctx: Context): Promise<Form> {
  if (ctx.get('Content-Length') !== '0' && ctx.is('application/x-www-form-urlencoded') === false) {
    ctx.set('Connection', 'close')
    throw new AppError('bad_request', 'The portal takes forms alone.')
  }
  await readUrlEncoded(ctx, async () => {})
  const body: unknown = ctx.request.body
  const fields = new Map<string, unknown>(typeof body === 'object' && body !== null ? Object.entries(body) : [])
  const all = (name: string) => [fields.get(name) ?? []].flat().filter((value) => typeof value === 'string')
  return { get: (name) => all(name)[0] ?? '', all }
}
