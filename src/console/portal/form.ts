import { Writable } from 'node:stream'
import type { Context } from 'koa'
import { koaBody } from 'koa-body'
import { AppError } from '../../core/domain/errors.ts'

export type FormField = readonly [name: string, values: readonly string[]]

export interface Form {
  /** Returns the first value of a field; empty if the field is missing. */
  get(name: string): string
  all(name: string): readonly string[]
  /** All fields with their values, sorted by name. */
  entries(): readonly FormField[]
  /** Null: no file was chosen. */
  readonly file: FormFile | null
}

export interface FormFile {
  readonly name: string
  readonly bytes: Uint8Array
}

/** Makes the error for one wrong field of a form, which the page shows beside the field. */
export function mistakeIn(field: string, sentence: string): AppError {
  return new AppError('bad_request', sentence, { facts: { errors: [{ pointer: `#/${field}`, detail: sentence }] } })
}

export const NO_FORM: Form = { get: () => '', all: () => [], entries: () => [], file: null }

const BODY_BYTES_MAX = 256 * 1024
export const FIELDS_MAX = 2000
/** The whole file is read into memory. */
export const FILE_BYTES_MAX = 4 * 1024 * 1024
const MULTIPART = 'multipart/form-data'

const COMMON = {
  json: false,
  text: false,
  patchNode: false,
  onError: (error: Error, ctx: Context) => {
    ctx.set('Connection', 'close')
    if ('status' in error && error.status === 413) throw new AppError('body_too_large', `A form may have at most ${BODY_BYTES_MAX} bytes.`)
    if ('httpCode' in error && error.httpCode === 413)
      throw new AppError(
        'body_too_large',
        `A file or a pasted list may have at most ${FILE_BYTES_MAX / (1024 * 1024)} MiB, and a form one file.`,
      )
    throw new AppError('bad_request', 'The form cannot be read.')
  },
} as const
const readUrlEncoded = koaBody({
  ...COMMON,
  formLimit: BODY_BYTES_MAX,
  // Depth 0 keeps a name such as `a[b]` as it is. Otherwise the parser would make an object of it.
  queryString: { depth: 0, parameterLimit: FIELDS_MAX, arrayLimit: FIELDS_MAX, allowPrototypes: true, plainObjects: true },
})

/**
 * Reads the form in the body of a request. A form may contain a file only if `takesFile` is true. Throws `bad_request` for a body that is not a
 * form, and `body_too_large`.
 */
export async function readForm(ctx: Context, { takesFile = false } = {}): Promise<Form> {
  if (takesFile && typeof ctx.is(MULTIPART) === 'string') return await readWithFile(ctx)
  if (ctx.get('Content-Length') !== '0' && ctx.is('application/x-www-form-urlencoded') === false) {
    ctx.set('Connection', 'close')
    throw new AppError('bad_request', 'The portal accepts only forms.')
  }
  await readUrlEncoded(ctx, async () => {})
  return formOf(ctx.request.body, null)
}

function formOf(body: unknown, file: FormFile | null): Form {
  const fields = new Map<string, unknown>(typeof body === 'object' && body !== null ? Object.entries(body) : [])
  const all = (name: string) => [fields.get(name) ?? []].flat().filter((value) => typeof value === 'string')
  const entries = () => [...fields.keys()].toSorted().map((name) => [name, all(name)] as const)
  return { get: (name) => all(name)[0] ?? '', all, entries, file }
}

async function readWithFile(ctx: Context): Promise<Form> {
  const chunks: Uint8Array[] = []
  let name = ''
  const read = koaBody({
    ...COMMON,
    urlencoded: false,
    multipart: true,
    formidable: {
      maxFiles: 1,
      maxFileSize: FILE_BYTES_MAX,
      maxFields: FIELDS_MAX,
      // A list may be pasted instead of chosen as a file.
      maxFieldsSize: FILE_BYTES_MAX,
      // A browser sends an empty file if none was chosen.
      allowEmptyFiles: true,
      minFileSize: 0,
      onFileBegin: (_field, file) => {
        name = file.originalFilename ?? ''
      },
      // Keep the file in memory, so that no copy of it stays on the disk.
      fileWriteStreamHandler: () =>
        new Writable({
          write(chunk: Uint8Array, _encoding, done) {
            chunks.push(chunk)
            done()
          },
        }),
    },
  })
  await read(ctx, async () => {})
  const bytes = Buffer.concat(chunks)
  return formOf(ctx.request.body, name === '' && bytes.length === 0 ? null : { name, bytes })
}
