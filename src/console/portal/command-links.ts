import type { Scope } from '../../core/flow/admin/tokens/authenticate.ts'
import { type Address, type AddressTag, charactersOf, html, link, type Markup, markup, withQuery } from './html.ts'

// Messages name commands and requests, because a terminal, a log and the API show them too. On a page each leads to the page that does the same.

interface Meant {
  /** In the HTML of a page. A group holds the name of an endpoint. */
  readonly words: string
  /** Null: no page does the same, so the command is shown as it is. */
  readonly page: ((to: AddressTag, found: string, name: string) => readonly [to: Address, name: string]) | null
  /** Default: `admin`. */
  readonly scope?: Scope
}

/** The first that matches decides. */
const MEANT: readonly Meant[] = [
  { words: 'parcel-relay reload\\b', page: (to) => [to`/reload`, 'Reload the config'] },
  { words: 'parcel-relay check\\b', page: (to) => [to`/check`, 'Check this deployment'] },
  { words: 'parcel-relay status\\b', page: (to) => [to`/`, 'Overview'], scope: 'status' },
  { words: 'parcel-relay backup\\b(?: NAME)?', page: (to) => [to`/backups`, 'Backups'] },
  { words: 'parcel-relay report\\b', page: (to) => [to`/report`, 'Carrier report'] },
  { words: 'parcel-relay prune\\b(?! --compact)', page: (to) => [to`/retention`, 'Retention'] },
  { words: 'parcel-relay inbox --refused', page: (to) => [to`/inbox/refusals`, 'Refused pushes'] },
  { words: 'parcel-relay parcels\\b', page: (to) => [to`/parcels`, 'Parcels'], scope: 'status' },
  // Refreshing what pushes name takes many requests, which only the command makes.
  { words: 'parcel-relay inbox --refresh', page: null },
  { words: 'parcel-relay inbox\\b(?: --(?:state \\w+|dismiss|reprocess))*', page: (to) => [to`/inbox`, 'Inbox'] },
  {
    words: 'parcel-relay endpoints (?:retry|enable|disable|remove) ([\\w.-]*\\w)',
    page: (to, found, name) => [withQuery(to`/webhooks`, { name }), found.replace('parcel-relay endpoints ', '')],
  },
  {
    words: 'parcel-relay endpoints (?:show|set) ([\\w.-]*\\w)(?: --to URL)?',
    page: (to, _, name) => [withQuery(to`/webhooks`, { name }), `the page of ${name}`],
  },
  { words: 'parcel-relay operator (?:test|enable)\\b', page: (to) => [to`/events`, 'What happened'] },
  { words: 'parcel-relay watch\\b(?: --file FILE)?', page: (to) => [{ path: `${to`/parcels`.path}#watch` }, 'Watch parcels'] },
  { words: 'parcel-relay secrets reseal\\b', page: (to) => [{ path: `${to`/settings`.path}#keys` }, 'Keys'] },
  { words: 'GET /relay/replicas\\b', page: (to) => [{ path: `${to`/carrier`.path}#replicas` }, 'Replicas'] },
  {
    words: '(?:GET|POST|PUT|PATCH|DELETE) /relay/[\\w/{}-]*\\w}?(?:\\?[\\w=&;]*\\w)?',
    page: (to, found) => [{ path: `${to`/docs`.path}#${sectionOf(found)}` }, found],
    scope: 'status',
  },
  { words: 'parcel-relay [a-z][a-z-]*(?: (?:give-up-tombstones|--[a-z-]+|[A-Z]{2,}\\b))*', page: null },
]
const ANY = new RegExp(MEANT.map(({ words }) => `(?:${words.replaceAll(/\((?!\?)/g, '(?:')})`).join('|'), 'g')
const EACH = MEANT.map((meant) => ({ ...meant, pattern: new RegExp(`^${meant.words}$`) }))

/** Elements whose text is not ours, is typed as it is, or leads somewhere else. Those with a class keep their commands on purpose. */
const KEPT = /^<(a|button|pre|textarea|option|q|title|code(?= )|span(?= class="(?:answer|said)"))\b/

/** Turns each command and each request of the API in a page into a link, if the portal has a page for it that the person may see. */
export function linkCommands(page: Markup, to: AddressTag, scope: Scope): Markup {
  const parts = charactersOf(page).split(/(<[^>]*>)/)
  let kept: Kept = null
  for (const [at, part] of parts.entries()) {
    if (at % 2 === 1) kept = inside(kept, part)
    else if (kept === null && part !== '') {
      const isAlone = parts[at - 1] === '<code>' && parts[at + 1] === '</code>'
      const linked = part.replace(ANY, (found) => charactersOf(shown(found, to, scope, isAlone)))
      // A link has its own look, so a command that became one is no code any more.
      if (isAlone && linked.startsWith('<a ') && linked.endsWith('</a>')) parts.splice(at - 1, 3, '', linked, '')
      else parts[at] = linked
    }
  }
  // The page is markup already, and only links were added to it.
  return markup(parts.join(''))
}

type Kept = { readonly element: string; readonly depth: number } | null

function inside(kept: Kept, tag: string): Kept {
  if (kept === null) {
    const element = KEPT.exec(tag)?.[1]
    return element === undefined ? null : { element, depth: 1 }
  }
  if (tag.startsWith(`<${kept.element}`)) return { ...kept, depth: kept.depth + 1 }
  if (tag !== `</${kept.element}>`) return kept
  return kept.depth === 1 ? null : { ...kept, depth: kept.depth - 1 }
}

function shown(found: string, to: AddressTag, person: Scope, isCode: boolean): Markup {
  for (const { pattern, page, scope = 'admin' } of EACH) {
    const match = pattern.exec(found)
    if (match === null) continue
    if (page === null || (scope === 'admin' && person !== 'admin')) break
    const [address, text] = page(to, found, match[1] ?? '')
    return link(address, markup(text))
  }
  return isCode ? markup(found) : html`<code>${markup(found)}</code>`
}

/** Returns the id of a request's section on the page about the API. */
function sectionOf(request: string): string {
  const [path = ''] = request.split('?')
  return path
    .replace(/[^a-z0-9]+/gi, '-')
    .replace(/-$/, '')
    .toLowerCase()
}
