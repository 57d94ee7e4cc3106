import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { Writable } from 'node:stream'
import type { Context } from 'koa'
import { koaBody } from 'koa-body'
import { type FormerOrder, type SentForm, SHOWN_AGAIN_MS } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { TokenKeyring } from '../../core/flow/admin/tokens/authenticate.ts'
import type { Part, Reads } from '../../core/flow/relay-part.ts'
import { headerValues } from '../../core/http/server/request-headers.ts'
import { charactersOf, escapeHtml, html, type Markup } from './html.ts'
import type { Person } from './session.ts'

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

/** The hidden field with the id of the form. */
const FORM_ID = 'form'

/** Gives every form an id of its own, which is valid for one person and one address only. */
export type FormIds = ReturnType<typeof createFormIds>

/** The tag of each form that changes something, as the pages write it. Escaped text cannot contain a tag. */
const FORM_TAG = /<form\b[^>]* method="post" action="([^"]*)"[^>]*>/g

/** `keyring`: the keys of tokens, which all replicas have. */
export function createFormIds(keyring: Pick<TokenKeyring, 'current' | 'seek'>) {
  return {
    /** Adds an id to each form of a page. */
    addTo: (page: string, person: Person) =>
      page.replace(FORM_TAG, (tag, path: string) => {
        const { name, key } = keyring.current()
        const random = randomBytes(12).toString('base64url')
        const value = `${random}.${name}.${markOf(key, ['form', random, ...namesOf(person), path])}`
        return `${tag}<input type="hidden" name="${FORM_ID}" value="${value}">`
      }),
    /** Reads the id of a form that a person has sent to `path`. Null: it has none. Throws `stale_form` if this relay did not make the id for them. */
    async read(form: Form, person: Person, path: string): Promise<SentForm | null> {
      const sent = form.get(FORM_ID)
      if (sent === '') return null
      const [id = '', name = '', mark = ''] = sent.split('.')
      const found = await keyring.seek(name)
      if (found === null || !isEqual(mark, markOf(found.key, ['form', id, ...namesOf(person), path]))) throw stale()
      const fields = form.entries().filter(([field]) => field !== FORM_ID)
      const file = form.file === null ? null : [form.file.name, createHash('sha256').update(form.file.bytes).digest('base64url')]
      return { id, fields: markOf(found.key, ['fields', fields, file]) }
    },
  }
}

function namesOf({ isFromProxy, name }: Person): readonly string[] {
  return [isFromProxy ? 'person' : 'app', name]
}

function markOf(key: Uint8Array, parts: readonly unknown[]): string {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url')
}

function isEqual(sent: string, mark: string): boolean {
  const [a, b] = [Buffer.from(sent), Buffer.from(mark)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function stale(): AppError {
  return new AppError(
    'stale_form',
    'This form was made for another person or page, or before the relay’s keys were replaced. Nothing was done. Load the page again.',
  )
}

/**
 * Refuses a form that another site has sent with a person's cookie. Browsers say in `Sec-Fetch-Site` where a form comes from. They leave this
 * header out over plain http, except on loopback. Then `Origin` must be the origin of `portal.publicUrl`. If that is not configured, `Origin`
 * must name the requested host. Throws `forbidden`, also if both headers are missing.
 */
export function refuseOtherSites(ctx: Context, publicOrigin: string | null): void {
  const site = onlyValue(ctx, 'sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin' || site === 'none') return
    throw refused()
  }
  const origin = onlyValue(ctx, 'origin')
  if (origin === null || !isOurs(origin, publicOrigin, ctx.get('Host'))) throw refused(elsewhere(origin, publicOrigin))
}

function isOurs(origin: string, publicOrigin: string | null, host: string): boolean {
  if (publicOrigin !== null) return origin === publicOrigin
  return origin === `http://${host}` || origin === `https://${host}`
}

/** Returns the value of a header. Null: it was not sent. Throws `forbidden` if it was sent more than once. */
function onlyValue(ctx: Context, name: string): string | null {
  const [value, ...more] = headerValues(ctx.req, name)
  if (more.length > 0) throw refused()
  return value ?? null
}

function refused(why = 'the Origin header names another page, or none. Open the page in the portal, and try again.'): AppError {
  return new AppError('forbidden', `This form was not sent from the portal: ${why}`)
}

/** Says so if the portal was opened at an address other than `portal.publicUrl`, where no session can be kept. */
function elsewhere(origin: string | null, publicOrigin: string | null): string | undefined {
  if (publicOrigin === null || origin === null || !/^https?:\/\//.test(origin)) return undefined
  const over = origin.startsWith('http:') && publicOrigin.startsWith('https:') ? ', over plain http' : ''
  return `it was opened at ${origin}${over}, but portal.publicUrl is ${publicOrigin}. Open the portal there, or correct that setting.`
}

interface Giving<Answer> {
  /** Carries out the order. Its transaction stores the form, and fails if the form has given an order before. */
  readonly give: () => Promise<Answer>
  /** Makes the same answer again, from what was stored. */
  readonly again: (former: FormerOrder) => Promise<Answer>
  /** Whether the answer says that the order was not carried out. */
  readonly isRefused: (answer: Answer) => boolean
}

/** Answers a form of the portal. Throws `stale_form` if the form was sent before with other fields, or too long ago. */
export type GiveOnce<Answer> = (form: SentForm, giving: Giving<Answer>) => Promise<Answer>

/**
 * Lets a form give its order once, however often it is sent, and to whichever replica. A repetition waits for the order and gets the same
 * answer.
 */
export function createGiveOnce<Answer>({ reads, clock }: Part<'clock', 'now'> & Reads<'findFormerOrder'>): GiveOnce<Answer> {
  const underWay = new Map<string, { readonly fields: string; readonly answer: Promise<Answer> }>()

  return async (form, giving) => {
    const other = underWay.get(form.id)
    if (other?.fields === form.fields) return await other.answer
    await other?.answer.catch(() => undefined)
    const answer = answerOf(form, giving)
    underWay.set(form.id, { fields: form.fields, answer })
    try {
      return await answer
    } finally {
      if (underWay.get(form.id)?.answer === answer) underWay.delete(form.id)
    }
  }

  async function answerOf(form: SentForm, { give, again, isRefused }: Giving<Answer>): Promise<Answer> {
    const repeat = async (former: FormerOrder): Promise<Answer> => {
      refuseOther(form, former, clock.now())
      return await again(former)
    }
    const former = await reads.findFormerOrder(form.id)
    if (former !== null) return await repeat(former)
    const given = await give().then(
      (answer) => ({ answer }),
      (error: unknown) => ({ error }),
    )
    if ('answer' in given && !isRefused(given.answer)) return given.answer
    // Another replica may have carried out the same form meanwhile, which is why this one was refused or failed.
    const meanwhile = await reads.findFormerOrder(form.id).catch(() => null)
    if (meanwhile !== null) return await repeat(meanwhile)
    if ('error' in given) throw given.error
    return given.answer
  }
}

function refuseOther({ fields }: SentForm, former: FormerOrder, nowMs: number): void {
  const isOther = former.fields !== null && former.fields !== fields
  if (!isOther && nowMs - former.action.atMs <= SHOWN_AGAIN_MS) return
  const why = isOther ? 'with other entries' : 'more than ten minutes ago'
  throw new AppError('stale_form', `This form was sent before ${why}, and was carried out then. Now nothing was done. Load the page again.`)
}

/** The names of fields that no page ever sends back: secrets, the ids of forms, and what a page knew when it was made. */
const NEVER_BACK: ReadonlySet<string> = new Set(['sharedKey', 'password', 'form', 'keys', 'queued', 'counted'])
/** The hidden fields that are sent back: what an edit form first showed, with which its entries are compared. */
const HIDDEN_BACK: ReadonlySet<string> = new Set(['shown'])

/** Returns the fields of a form that pages may send back. */
export function fieldsToKeep(fields: readonly FormField[]): readonly FormField[] {
  return fields.filter(([name]) => !NEVER_BACK.has(name))
}

interface Refill {
  /** The address of the form. */
  readonly path: string
  readonly fields: readonly FormField[]
  /** What the page says before the form's fields, or at its top if the page does not have the form. */
  readonly note: Markup
  /** A sentence for each wrong field, by the field's name. */
  readonly errors: Readonly<Record<string, string>>
}

interface FormOnPage {
  readonly at: number
  readonly tag: string
  readonly inside: string
}

const FORM = /(<form\b[^>]* method="post" action="([^"]*)"[^>]*>)(.*?)<\/form>/gs
const CONTROL = /<input\b([^>]*)>|<textarea\b([^>]*)>.*?<\/textarea>|<select\b([^>]*)>(.*?)<\/select>/gs

/**
 * Writes what a person has typed back into the form on a page, with the mistakes beside their fields, and unfolds what hides the form. Pages are
 * made by `html`, so every attribute is in double quotes, and no text contains a tag.
 */
export function fillForm(page: string, { path, fields, note, errors }: Refill): string {
  const kept = fieldsToKeep(fields)
  const text = charactersOf(note)
  const form = formFor(page, path, kept)
  if (form === null) return page.replace(/<main\b[^>]*>/, (tag) => `${tag}\n${text}`)
  const before = unfolded(page.slice(0, form.at))
  const inside = filled(form.inside, kept, errors).replaceAll('<details class="plain">', '<details class="plain" open>')
  return `${before}${form.tag}${text}${inside}${page.slice(form.at + form.tag.length + form.inside.length)}`
}

/** Finds the form at an address. If there are several, finds the one with most of the sent fields. */
function formFor(page: string, path: string, fields: readonly FormField[]): FormOnPage | null {
  const action = charactersOf(html`${path}`)
  const found = [...page.matchAll(FORM)]
    .filter((match) => match[2] === action)
    .map((match) => ({ at: match.index, tag: match[1] ?? '', inside: match[3] ?? '' }))
  const sent = new Map(fields)
  const common = ({ inside }: FormOnPage) => {
    const names = [...inside.matchAll(/<(?:input|select|textarea|button)\b[^>]*>/g)].flatMap(([tag]) => {
      const name = attributeOf(tag, 'name') ?? ''
      const values = sent.get(name)
      return values !== undefined && (!isHidden(tag) || values.includes(attributeOf(tag, 'value') ?? '')) ? [name] : []
    })
    return new Set(names).size
  }
  return found.map((form) => ({ form, shared: common(form) })).toSorted((one, other) => other.shared - one.shared)[0]?.form ?? null
}

/** Opens the disclosures that are still open at the end of this part of a page. */
function unfolded(before: string): string {
  const open: number[] = []
  for (const { 0: tag, index } of before.matchAll(/<\/?details\b[^>]*>/g)) {
    if (tag.startsWith('</')) open.pop()
    else open.push(index)
  }
  return open.toReversed().reduce((text, at) => `${text.slice(0, at)}${withOpen(text.slice(at))}`, before)
}

function withOpen(text: string): string {
  return text.replace(/^<details\b[^>]*>/, (tag) => (/ open\b/.test(tag) ? tag : `${tag.slice(0, -1)} open>`))
}

function filled(inside: string, fields: readonly FormField[], errors: Refill['errors']): string {
  const sent = new Map(fields)
  const told = new Set<string>()
  return inside.replace(CONTROL, (control: string) => {
    const tag = /^<[^>]*>/.exec(control)?.[0] ?? ''
    const name = attributeOf(tag, 'name') ?? ''
    const values = sent.get(name) ?? (isTick(tag) && fields.length > 0 ? [] : null)
    const again = values === null || (isHidden(tag) && !HIDDEN_BACK.has(name)) ? control : withValues(control, tag, values)
    const error = errors[name]
    if (error === undefined || told.has(name) || isHidden(tag)) return again
    told.add(name)
    const id = `${attributeOf(tag, 'id') ?? name}-error`
    const marked = again.replace(/^<[a-z]+/, (start) => `${start} aria-invalid="true"`).replace(/ aria-describedby="/, `$&${id} `)
    const described = / aria-describedby="/.test(tag) ? marked : marked.replace(/^<[a-z]+/, (start) => `${start} aria-describedby="${id}"`)
    return `${described}${charactersOf(html`<span class="err" id="${id}">${error}</span>`)}`
  })
}

function withValues(control: string, tag: string, values: readonly string[]): string {
  const [value = ''] = values
  const safe = escapeHtml(value)
  if (control.startsWith('<textarea')) return `${tag}\n${safe}</textarea>`
  if (control.startsWith('<select')) {
    return control.replace(/<option\b([^>]*)>([^<]*)/g, (option: string, more: string, text: string) => {
      const isChosen = (attributeOf(option, 'value') ?? text) === safe
      return `<option${more.replace(' selected', '')}${isChosen ? ' selected' : ''}>${text}`
    })
  }
  if (isTick(tag)) {
    const isTicked = values.some((one) => escapeHtml(one) === (attributeOf(tag, 'value') ?? 'on'))
    return `${tag.slice(0, -1).replace(/ checked\b/, '')}${isTicked ? ' checked' : ''}>`
  }
  if (/ type="(?:password|file)"/.test(tag)) return control
  const others = tag.slice(0, -1).replace(/ value="[^"]*"/, '')
  return `${others} value="${safe}">`
}

function isTick(tag: string): boolean {
  return / type="(?:checkbox|radio)"/.test(tag)
}

function isHidden(tag: string): boolean {
  return / type="hidden"/.test(tag)
}

/** Returns the value of an attribute as the page writes it. Null: there is no such attribute. */
function attributeOf(tag: string, name: string): string | null {
  return new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? null
}
