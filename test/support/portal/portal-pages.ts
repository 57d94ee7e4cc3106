import type { createVisitor } from './portal-visitor.ts'

export const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')

/** A tag as pages write it: attributes are in quotes, or have no value. */
const TAG = /^<(?:!doctype html|\/?([a-z][a-z0-9]*)((?: [a-z][a-z-]*(?:="[^"<>]*")?)*) ?\/?)>/i
const ELEMENTS = new Set(
  `a article aside b body br button circle code dd defs details div dl dt em fieldset figure figcaption form g h1 h2 h3 head header hr html i input label
  legend li line link main mark meta nav ol option p path pre q rect s script section select small span strong summary svg symbol table tbody td text textarea tfoot th
  thead time title tr ul use wbr`.split(/\s+/),
)

/** Lists the tags in a page that the portal never writes, such as injected scripts. */
export function foreignIn(page: string): readonly string[] {
  return [...page.matchAll(/</g)].flatMap(({ index }) => {
    const [tag, element = 'html', attributes = ''] = TAG.exec(page.slice(index)) ?? []
    if (tag === undefined || !ELEMENTS.has(element.toLowerCase())) return [page.slice(index, index + 80)]
    const isForeign =
      / (?:on\w+|style|srcdoc|formaction)\b/i.test(attributes.replaceAll(/="[^"]*"/g, '')) ||
      / (?:href|src|action)="(?![/#"])/.test(attributes)
    const isScript = element === 'script' && !tag.startsWith('</') && !/ src="\/assets\/portal\.js"/.test(tag)
    return isForeign || isScript ? [tag] : []
  })
}

/** Returns a few pages and all pages to which their links lead. Leaves out downloads, and the manual, which is the same for everybody. */
export async function crawl(visitor: Pick<ReturnType<typeof createVisitor>, 'get'>): Promise<ReadonlyMap<string, string>> {
  const pages = new Map<string, string>()
  const waiting = ['/', '/inbox?state=all', '/login', '/webhooks/new']
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue
    const answer = await visitor.get(path)
    if (!(answer.headers.get('content-type') ?? '').startsWith('text/html')) continue
    pages.set(path, answer.text)
    for (const [, to = ''] of answer.text.matchAll(/ href="(\/[^"#]*)/g))
      if (!/^\/(?:assets|docs)\b|\/body$/.test(to)) waiting.push(to.replaceAll('&amp;', '&'))
  }
  return pages
}

export interface FoundForm {
  readonly method: 'get' | 'post'
  readonly path: string
  /** The fields with the values that the page gave them. */
  readonly fields: Readonly<Record<string, string>>
  readonly hidden: readonly string[]
}

/** Returns the forms with fields on these pages, each kind of form once. */
export function formsOn(pages: ReadonlyMap<string, string>): readonly FoundForm[] {
  const found = new Map<string, FoundForm>()
  for (const page of pages.values()) {
    for (const [, attributes = '', inside = ''] of page.matchAll(/<form([^>]*)>(.*?)<\/form>/gs)) {
      const path = / action="([^"]*)"/.exec(attributes)?.[1] ?? ''
      const method = attributes.includes('method="post"') ? 'post' : 'get'
      const inputs = [...inside.matchAll(/<(?:input|select|textarea|button)\b([^>]*)>/g)].flatMap(([, of = '']) => {
        const name = / name="([^"]*)"/.exec(of)?.[1]
        return name === undefined ? [] : [{ name, value: / value="([^"]*)"/.exec(of)?.[1] ?? '', isHidden: of.includes('type="hidden"') }]
      })
      const fields = Object.fromEntries(inputs.map(({ name, value }) => [name, value]))
      const hidden = inputs.filter(({ isHidden }) => isHidden).map(({ name }) => name)
      const kind = `${method} ${path.replaceAll(/\d+/g, 'N')} ${Object.keys(fields).join()}`
      if (inputs.length > 0 && !found.has(kind)) found.set(kind, { method, path, fields, hidden })
    }
  }
  return [...found.values()]
}
