import type { FormField } from './form.ts'
import { charactersOf, escapeHtml, html, type Markup } from './html.ts'

/** The names of fields that no page ever sends back: secrets, the ids of forms, and what a page knew when it was made. */
const NEVER_BACK: ReadonlySet<string> = new Set(['sharedKey', 'password', 'form', 'keys', 'queued', 'counted'])
/** The hidden fields that are sent back: what an edit form first showed, with which its entries are compared. */
const HIDDEN_BACK: ReadonlySet<string> = new Set(['shown'])

/** Returns the fields of a form that pages may send back. */
export function fieldsToKeep(fields: readonly FormField[]): readonly FormField[] {
  return fields.filter(([name]) => !NEVER_BACK.has(name))
}

export interface Refill {
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
