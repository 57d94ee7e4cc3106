import { z } from 'zod'
import { AppError } from '../../../core/domain/errors.ts'
import { createProblemAnswers, type ProblemAnswer } from '../../../core/http/server/answer-schemas.ts'
import type { Capability, PathParameter, RouteRow } from '../../../core/http/server/route.ts'
import type { ShowDocs } from '../../document/document.routes.ts'
import { type AddressTag, createAddresses, html, link, type Markup, markup, type Part } from '../html.ts'
import { type ManualView, renderManual } from '../layout.ts'
import { headline } from '../parts.ts'
import type { PortalSettings } from '../portal.ts'
import { present, presentAsset } from '../serve-page.ts'
import { type LinkTo, loadMarkdown, MANUAL, type ManualPage, type Markdown, manualPage, PICTURES } from './manual.ts'

export interface DocsOptions {
  /** Reads a file of `docs/`. */
  readonly readDocs: (name: string) => Promise<Buffer>
  readonly settings: () => Pick<PortalSettings, 'prefix' | 'publicOrigin'>
  readonly version: string
  /** The routes that the page of the API describes. */
  readonly capabilities: readonly Capability[]
}

/** Creates the handler for the pages of the manual and of the API. Anybody who reaches the internal listener may read them. */
export function createShowDocs({ readDocs, settings, version, capabilities }: DocsOptions): ShowDocs {
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
    if (manual === null) return apiPage(view, { md, publicUrl, capabilities })
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

interface ApiPageParts extends Pick<DocsOptions, 'capabilities'> {
  readonly md: Markdown
  readonly publicUrl: string | null
}

/** Makes the page about the API. It describes every route of both listeners: purpose, input, answers, and an example with `curl`. */
function apiPage({ to }: ManualView, { md, publicUrl, capabilities }: ApiPageParts): Markup {
  const problemsOf = createProblemAnswers()
  const rows = capabilities.flatMap(({ routes }) => routes)
  return html`${headline({
    title: 'API',
    lead: html`${rows.length} addresses. The same for programs: ${link(to`/openapi.json`, 'openapi.json')} (OpenAPI 3.1).`,
  })}
<p>Everything but <code>POST /webhooks/status</code> is on the internal listener. Lists take <code>limit</code> and <code>cursor</code>, which is the <code>next</code> of the page before. Errors are <code>application/problem+json</code>. The examples below use these shell variables:</p>
<pre>${prelude(publicUrl)}</pre>
<h2>Contents</h2>
${capabilities.map(
  ({ about, routes }) => html`<h3>${about}</h3>
<ul>${routes.map((row) => html`<li><a href="#${idOf(row)}"><code>${nameOf(row)}</code></a> ${row.summary}</li>`)}</ul>
`,
)}
${capabilities.map((capability) => capabilitySection(capability, md, problemsOf))}`
}

function capabilitySection({ about, routes }: Capability, md: Markdown, problemsOf: (row: RouteRow) => readonly ProblemAnswer[]): Markup {
  return html`<h2>${about}</h2>
${routes.map((row) => addressSection(row, md, problemsOf(row)))}`
}

function addressSection(row: RouteRow, md: Markdown, problems: readonly ProblemAnswer[]): Markup {
  const line = (text: string) => markup(md.line(text))
  const answers = [
    ...Object.entries(row.answers()).map(([status, { description }]) => [status, description] as const),
    ...problems.map(({ status, description }) => [String(status), description] as const),
  ].toSorted(([a], [b]) => a.localeCompare(b))
  return html`<section class="address" aria-labelledby="${idOf(row)}"><h3 id="${idOf(row)}"><code>${nameOf(row)}</code></h3>
<p>${line(row.summary)}. ${row.description === '' ? null : line(row.description)}</p>
<p class="dim">${accessOf(row)}</p>
${listOf('Takes', inputsOf(row), line)}
<pre>${curlOf(row)}</pre>
<details class="plain"><summary>Answers</summary>${listOf(null, answers, line)}</details></section>
`
}

function listOf(title: string | null, rows: readonly (readonly [name: string, text: string])[], line: (text: string) => Markup): Part {
  if (rows.length === 0) return null
  return html`${title === null ? null : html`<h4>${title}</h4>`}<dl class="rows">${rows.map(([name, text]) => html`<dt><code>${name}</code></dt><dd>${line(text)}</dd>`)}</dl>`
}

function accessOf({ scope, listener, path }: RouteRow): string {
  const where = { internal: '', public: ' On the public listener.', both: ' On both listeners.' }[listener]
  if (scope !== null) return `Needs a token of an app with the scope ${scope}.${where}`
  return `${path.startsWith('/webhooks') ? 'Needs a signature.' : 'Open to everybody who reaches it.'}${where}`
}

function inputsOf({ params, query, body }: RouteRow): readonly (readonly [name: string, text: string])[] {
  const ofPath = Object.entries<PathParameter>(params).map(([name, { description }]) => [`{${name}}`, description] as const)
  const ofQuery = Object.entries<z.core.$ZodType>(query.shape).map(([name, schema]) => [name, describe(schema)] as const)
  const ofBody = Object.values(body?.content ?? {}).flatMap(({ schema }) => {
    const made = schema()
    return made instanceof z.ZodObject
      ? Object.entries<z.core.$ZodType>(made.shape).map(([name, field]) => [`"${name}"`, describe(field)] as const)
      : []
  })
  return [...ofPath, ...ofQuery, ...ofBody]
}

function describe(schema: z.core.$ZodType): string {
  return schema instanceof z.ZodType ? (schema.description ?? '') : ''
}

/** Returns the name of a route as in the OpenAPI document: `GET /relay/parcels/{identifier}`. */
function nameOf({ method, path }: RouteRow): string {
  return `${method.toUpperCase()} ${path.replace(/:(\w+)/g, '{$1}')}`
}

/** Returns the id of a route's section on the page: `get-relay-parcels-identifier`. */
function idOf({ method, path }: RouteRow): string {
  return `${method}${path.replace(/[^a-z0-9]+/gi, '-').replace(/-$/, '')}`
}

/** Returns the shell lines that set the variables of the examples. `publicUrl`: `portal.publicUrl`; null: not configured. */
function prelude(publicUrl: string | null): string {
  return `RELAY=${publicUrl === null ? 'http://127.0.0.1:8081' : quoted(publicUrl.replace(/\/+$/, ''))}   # the internal listener
PUBLIC=http://127.0.0.1:8080   # the public listener
USERNAME=shop PASSWORD='shop-demo-password'   # of an app
SHARED_KEY='the key of the carrier, from webhook.sharedKeys'
TOKEN=$(curl -sS "$RELAY/auth/token" -H 'Content-Type: application/json' \\
  --data "{\\"username\\":\\"$USERNAME\\",\\"password\\":\\"$PASSWORD\\"}" | sed 's/.*"token" *: *"\\([^"]*\\)".*/\\1/')`
}

/** Returns a shell command that calls a route with the example from its row in the table of routes. */
function curlOf(row: RouteRow): string {
  const { method, body, scope, listener, example } = row
  const values = new Map<string, string>(Object.entries(example.path))
  const path = row.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values.get(name) ?? ''))
  const address = `"$${listener === 'public' ? 'PUBLIC' : 'RELAY'}${path}${example.query === undefined ? '' : `?${example.query}`}"`
  const [content] = Object.entries(body?.content ?? {})
  const isSigned = row.path.startsWith('/webhooks') && content !== undefined
  const options = [
    `curl -sS${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} ${address}`,
    ...(scope === null ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...(content === undefined ? [] : [`-H 'Content-Type: ${content[0]}'`]),
    ...(isSigned ? ['-H "x-service-hmac-sha256: $(printf %s "$BODY" | openssl dgst -sha256 -hmac "$SHARED_KEY" -binary | base64)"'] : []),
    ...(content === undefined ? [] : [isSigned ? '--data-binary "$BODY"' : `--data-binary ${quoted(textOf(content[1].example))}`]),
  ]
  const line = options.join(' \\\n  ')
  return isSigned ? `BODY=${quoted(textOf(content[1].example))}\n${line}` : line
}

function textOf(example: unknown): string {
  return typeof example === 'string' ? example : JSON.stringify(example)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
