import type { Context } from 'koa'
import type { Actor, FormerOrder } from '../../core/domain/admin/operator-action.ts'
import type { Scope } from '../../core/flow/admin/tokens/authenticate.ts'
import { linkCommands } from './command-links.ts'
import type { Form } from './form.ts'
import { type Address, type AddressTag, charactersOf, html, link, type Markup, markup, type Part } from './html.ts'
import { breakable, icon, liveAs, type StateKind, sprite } from './parts.ts'
import type { Person } from './session.ts'
import { zone } from './times.ts'

/** The links of the side bar: id, name, and the scope that a person needs to see the link. */
const SECTIONS = [
  ['overview', 'Overview', 'status'],
  ['parcels', 'Parcels', 'status'],
  ['webhooks', 'Webhooks', 'admin'],
  ['deliveries', 'Deliveries', 'admin'],
  ['inbox', 'Inbox', 'admin'],
  ['carrier', 'Carrier', 'admin'],
  ['settings', 'Settings', 'admin'],
] as const

export type Section = (typeof SECTIONS)[number][0]

/** Words about trouble, such as "2 problems", which the side bar shows next to the link of a section. */
export type Marks = Readonly<Partial<Record<Section, readonly [kind: StateKind, text: string]>>>

export interface View {
  readonly to: AddressTag
  readonly nowMs: number
  /** The host of the request. It names the relay in titles and in the side bar. */
  readonly host: string
  readonly version: string
  /** The origin of `portal.publicUrl`; null: none is configured. */
  readonly publicOrigin: string | null
  /** Empty if the state of the relay was not read, for example on an error page. */
  readonly marks: Marks
  /** Whether script may load the page again to keep it up to date. False for the answer to a form, which no GET can load again. */
  readonly isLive: boolean
}

/** What a page of the manual needs. People read the manual without logging in. */
export type ManualView = Pick<View, 'to' | 'host' | 'version'>

/** Renders a page. `title`: of the browser's tab. It names the subject of the page and, if that is in trouble, its state. */
export function renderPage(view: View & { readonly person: Person }, section: Section | null, title: string, main: Part): string {
  const { to, marks, isLive, person } = view
  const links = SECTIONS.filter(([, , scope]) => person.scope === 'admin' || scope === 'status')
  const side = html`<form class="find" role="search" action="${to`/parcels`.path}">
<label class="hide" for="nav-q">Find a parcel</label>
${icon('find')}<input id="nav-q" name="query" type="search" placeholder="Find a parcel" autocomplete="off" spellcheck="false">
</form>
<ul${isLive ? liveAs('side-links') : null}>
${links.map(
  ([id, name]) => html`<li>${link(addressOf(to, id), name, section === id ? markup(' aria-current="page"') : null)}${markOf(marks[id])}</li>
`,
)}</ul>`
  const foot = html`<p>Times in ${zone} <button class="linkish" type="button" data-zone hidden>change</button></p>
<p>${link(to`/docs`, 'Docs')}, version ${view.version}</p>
${footOf(to, person)}`
  return frame(view, title, { side, foot, main: linkCommands(html`${main}`, to, person.scope) })
}

/** Renders a page of the manual, which anybody may read. `links`: list items with links to all pages. */
export function renderManual(
  view: ManualView,
  { title, links, main }: { readonly title: string; readonly links: Markup; readonly main: Part },
): string {
  const side = html`<ul>
${links}</ul>`
  const foot = html`<p>${link(view.to`/`, 'Portal')}, version ${view.version}</p>`
  return frame(view, `${title} · Docs`, { side, foot, main })
}

function frame(view: ManualView, title: string, { side, foot, main }: Readonly<Record<'side' | 'foot' | 'main', Part>>): string {
  const { to, host } = view
  const brand = markup(' class="brand"')
  return charactersOf(html`${head(view, title)}
<body>
<a class="skip" href="#main">Skip to content</a>
${sprite}
<header class="top">
${link(to`/`, html`${icon('box')}parcel relay`, brand)}
<button class="btn" type="button" popovertarget="nav">${icon('menu')}Menu</button>
</header>
<nav class="side" id="nav" aria-label="Main" popover>
${link(to`/`, html`${icon('box')}<span>parcel relay <small>${breakable(host)}</small></span>`, brand)}
${side}
<div class="foot">
${foot}
</div>
</nav>
<main id="main" tabindex="-1">
${main}
</main>
</body>
</html>
`)
}

/** Renders a page for somebody who is not logged in: the login page, and errors. */
export function renderBare(view: View, title: string, main: Part): string {
  return charactersOf(html`${head(view, title)}
<body class="bare">
${sprite}
<main id="main">
<p class="brand">${icon('box')}<span>parcel relay <small>${breakable(view.host)}</small></span></p>
${main}
</main>
</body>
</html>
`)
}

function head({ to }: Pick<View, 'to'>, title: string): Markup {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · parcel relay</title>
<link rel="icon" href="${to`/assets/icon.svg`.path}">
<link rel="stylesheet" href="${to`/assets/portal.css`.path}">
<script src="${to`/assets/portal.js`.path}" defer></script>
</head>`
}

function addressOf(to: AddressTag, section: Section): Address {
  return section === 'overview' ? to`/` : to`/${section}`
}

function markOf(mark: readonly [kind: StateKind, text: string] | undefined): Markup | null {
  return mark === undefined ? null : html`<span class="mark ${mark[0]}">${mark[1]}</span>`
}

/** Makes the foot of the side bar. A person whom the proxy has logged in gets no button to log out. */
function footOf(to: AddressTag, { name, isFromProxy }: Person): Markup {
  return isFromProxy
    ? html`<p>${name} <small>Your proxy logs you in, and logs you in again: log out there.</small></p>`
    : html`<form method="post" action="${to`/logout`.path}"><span>${name}</span> <button class="linkish" type="submit">Log out</button></form>`
}

/** A request for a page. The person is logged in and has the scope that the route needs. */
export interface Visit extends View {
  readonly person: Person
  /** The person and their address, for the audit trail. */
  readonly by: Actor
  readonly ctx: Context
  /** Returns a variable part of the path, as raw text. */
  readonly param: (name: string) => string
  /** Returns a parameter of the query; empty if it is missing. */
  readonly query: (name: string) => string
  /** The form that was sent; empty for a GET. */
  readonly form: Form
}

/**
 * A page as HTML, by default with status 200; an address of the portal, for a redirect after an action; or a file to download.
 */
export type PageAnswer =
  | { readonly page: string; readonly status?: number }
  | { readonly goTo: Address }
  | { readonly file: Uint8Array; readonly name: string }

export interface PageRoute {
  readonly method: 'get' | 'post'
  readonly path: `/${string}`
  readonly scope: Scope
  readonly takesFile?: true
  readonly answer: (visit: Visit) => Promise<PageAnswer>
  /**
   * Answers a form whose order was carried out when it was sent before, as it was answered then. Absent: goes to the page of the thing that
   * the form is about, whose address is that of the form without its last part.
   */
  readonly again?: (visit: Visit, former: FormerOrder) => Promise<PageAnswer>
}

type PageOptions = Partial<Pick<PageRoute, 'scope' | 'takesFile' | 'again'>>

/** Left out: the scope is `admin`. */
export function getPage(path: PageRoute['path'], answer: PageRoute['answer'], options: PageOptions = {}): PageRoute {
  return { method: 'get', path, scope: 'admin', answer, ...options }
}

/** A form that people send. Left out: the scope is `admin`. */
export function postForm(path: PageRoute['path'], answer: PageRoute['answer'], options: PageOptions = {}): PageRoute {
  return { method: 'post', path, scope: 'admin', answer, ...options }
}
