import type { Token } from 'markdown-it'
import type { ConcernKind, Runbook } from '../../problems/concern-kinds.ts'
import type { Problem } from '../../problems/verdict.ts'
import { type Address, type AddressTag, html, link, type Markup } from '../html.ts'

/** The pages of the manual that the portal shows: the name of the file in `docs/` without `.md`, and the title. Sorted for reading. */
export const MANUAL = [
  ['operating', 'Operating'],
  ['upgrading', 'Upgrading'],
  ['runbooks', 'Runbooks'],
  ['configuration', 'Configuration'],
  ['carrier', 'The carrier'],
  ['integrating', 'Integrating an app'],
  ['api', 'Using the API'],
  ['feed', 'The feed'],
  ['insight', 'Insight'],
  ['endpoints', 'Endpoints'],
  ['scaling', 'Scaling'],
  ['domain', 'The domain'],
  ['faults', 'Faults'],
  ['performance', 'Performance'],
  ['architecture', 'Architecture'],
  ['glossary', 'Glossary'],
  ['merge-proof', 'Why the merge is right'],
] as const

export type ManualPage = (typeof MANUAL)[number][0]

export function manualPage(name: string): ManualPage | null {
  return MANUAL.find(([page]) => page === name)?.[0] ?? null
}

/** The pictures in these pages, by their names in `docs/`. */
export const PICTURES: readonly string[] = ['polling.svg']

/** The runbooks of the problems of the verdict itself. */
export const RUNBOOKS: Readonly<Record<Exclude<Problem['kind'], ConcernKind>, Runbook>> = {
  not_ready: ['the-relay-is-not-ready', 'the relay is not ready'],
  credentials_refused: ['credentials_refused', 'refused credentials'],
  carrier_failing: ['carrier_failing', 'the carrier fails'],
  pushes_silent: ['pushes_silent', 'pushes are silent'],
  pushes_lossy: ['pushes_lossy', 'pushes are lost'],
  silence_over: ['parcels-that-no-push-has-named', 'parcels that no push has named'],
  pushes_refused: ['refused-pushes', 'refused pushes'],
  endpoint_failing: ['endpoint_failing', 'a webhook fails'],
  endpoint_disabled: ['endpoint_disabled', 'a webhook is disabled'],
  operator_unheard: ['operators-are-not-told', 'operators are not told'],
  disk_full: ['disk_full', 'the disk is full'],
  disk_low: ['disk_low', 'the disk fills'],
  backup_failing: ['backup_failed', 'a backup fails'],
  clock_doubted: ['clock_doubted', 'the clock may be wrong'],
  quarantined: ['pushes_quarantined', 'pushes in quarantine'],
  settings_differ: ['settings-differ', 'settings differ'],
}

export function runbookOf(problem: Problem): Runbook {
  return 'concern' in problem ? problem.concern.runbook : RUNBOOKS[problem.kind]
}

/** Makes the link to a runbook. */
export function runbookLink(to: AddressTag, [heading, name]: Runbook): Markup {
  const address: Address = { path: `${to`/docs/runbooks`.path}#${heading}` }
  return html`<p>${link(address, `Runbook: ${name}`)}</p>`
}

/** Translates the target of a link. Null: the portal does not show the target, so the link becomes plain text. */
export type LinkTo = (href: string) => string | null

/** Turns our own Markdown into HTML. HTML tags in the Markdown are shown as text. */
export type Markdown = Awaited<ReturnType<typeof loadMarkdown>>

/** Loads the library when somebody first reads the manual. Until then the relay saves the memory that the library takes. */
export async function loadMarkdown() {
  const { default: MarkdownIt } = await import('markdown-it')
  const md = new MarkdownIt({ html: false })
  const { rules } = md.renderer
  // A wide table scrolls inside its own box. `tabindex` lets the keyboard scroll it too.
  rules.table_open = () => '<div class="wide" tabindex="0"><table>'
  rules.table_close = () => '</table></div>'
  return {
    page: (text: string, linkTo: LinkTo) => {
      const tokens = md.parse(text, {})
      nameHeadings(tokens)
      for (const { children } of tokens) if (children !== null) lead(children, linkTo)
      return md.renderer.render(tokens, md.options, {})
    },
    /** Renders a few words, without a paragraph around them. */
    line: (text: string) => md.renderInline(text),
  }
}

/** Gives each heading an id by GitHub's rule, so that links such as `#move-the-store` work here as on GitHub. */
function nameHeadings(tokens: readonly Token[]): void {
  const used = new Map<string, number>()
  tokens.forEach((token, at) => {
    if (token.type !== 'heading_open') return
    const slug = slugOf(tokens[at + 1]?.content ?? '')
    const before = used.get(slug) ?? 0
    used.set(slug, before + 1)
    token.attrSet('id', before === 0 ? slug : `${slug}-${before}`)
  })
}

/** Turns `Move the store` into `move-the-store`. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
}

function lead(tokens: readonly Token[], linkTo: LinkTo): void {
  const open: boolean[] = []
  for (const token of tokens) {
    if (token.type === 'image') token.attrSet('src', linkTo(String(token.attrGet('src'))) ?? '')
    if (token.type === 'link_open') {
      const target = linkTo(String(token.attrGet('href')))
      open.push(target !== null)
      if (target === null) Object.assign(token, { tag: 'span', attrs: null })
      else token.attrSet('href', target)
    }
    if (token.type === 'link_close' && open.pop() === false) token.tag = 'span'
  }
}
