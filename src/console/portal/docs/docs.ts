import { AppError } from '../../../core/domain/errors.ts'
import type { ShowDocs } from '../../document/document.routes.ts'
import { type AddressTag, createAddresses, html, link, type Markup, markup } from '../html.ts'
import { type ManualView, renderManual } from '../layout.ts'
import type { PortalSettings } from '../portal.ts'
import { present, presentAsset } from '../present-page.ts'
import { apiPage } from './api.page.ts'
import { type LinkTo, loadMarkdown, MANUAL, type ManualPage, type Markdown, manualPage, PICTURES } from './manual.ts'

export interface DocsOptions {
  /** Reads a file of `docs/`. */
  readonly readDocs: (name: string) => Promise<Buffer>
  readonly settings: () => Pick<PortalSettings, 'prefix' | 'publicOrigin'>
  readonly version: string
}

/** Creates the handler for the pages of the manual and of the API. Anybody who reaches the internal listener may read them. */
export function createShowDocs({ readDocs, settings, version }: DocsOptions): ShowDocs {
  let loading: Promise<Markdown> | null = null
  // Keep finished pages until the public URL changes, because anybody may load them, as often as they like.
  let made: { readonly publicUrl: string | null; readonly pages: Map<string, Promise<Markup>> } = { publicUrl: null, pages: new Map() }

  return async (ctx, name) => {
    if (PICTURES.includes(name)) return presentAsset(ctx, name, await readDocs(name))
    const manual = manualPage(name)
    if (manual === null && name !== '') throw new AppError('not_found', 'The manual has no such page.')
    const { prefix, publicOrigin } = settings()
    const publicUrl = publicOrigin === null ? null : publicOrigin + prefix
    if (made.publicUrl !== publicUrl) made = { publicUrl, pages: new Map() }
    const { pages } = made
    const view = { to: createAddresses(prefix), host: ctx.get('Host'), version }
    const main = pages.get(name) ?? makePage(manual, view, publicUrl)
    pages.set(name, main)
    main.catch(() => pages.delete(name))
    const title = MANUAL.find(([page]) => page === name)?.[1] ?? 'API'
    present(ctx, { page: renderManual(view, { title, main: await main, links: linksTo(view.to, name) }) })
  }

  async function makePage(manual: ManualPage | null, view: ManualView, publicUrl: string | null): Promise<Markup> {
    loading ??= loadMarkdown()
    const md = await loading
    if (manual === null) return apiPage(view, md, publicUrl)
    const text = (await readDocs(`${manual}.md`)).toString('utf8')
    return html`<article class="manual">${markup(md.page(text, linksOf(view.to)))}</article>`
  }
}

function linksTo(to: AddressTag, current: string): Markup {
  const here = (name: string) => (name === current ? markup(' aria-current="page"') : null)
  return html`<li>${link(to`/docs`, 'API', here(''))}</li>
${MANUAL.map(([name, title]) => html`<li>${link(to`/docs/${name}`, title, here(name))}</li>\n`)}`
}

/** Turns links between files of `docs/` into links between pages. A link to a file that is not served becomes plain text. */
function linksOf(to: AddressTag): LinkTo {
  return (href) => {
    if (/^https?:\/\//.test(href) || href.startsWith('#')) return href
    const [, name = '', anchor = ''] = /^(?:\.\/)?([\w-]+)\.md(#[\w-]+)?$/.exec(href) ?? []
    if (manualPage(name) !== null) return to`/docs/${name}`.path + anchor
    return PICTURES.includes(href) ? to`/docs/${href}`.path : null
  }
}
