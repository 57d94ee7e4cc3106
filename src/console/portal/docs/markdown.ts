import type { Token } from 'markdown-it'

/** Translates the target of a link. Null: the portal does not show the target, so the link becomes plain text. */
export type LinkTo = (href: string) => string | null

/** Turns our own Markdown into HTML. HTML tags in the Markdown are shown as text. */
export interface Markdown {
  readonly page: (text: string, linkTo: LinkTo) => string
  /** Renders a few words, without a paragraph around them. */
  readonly line: (text: string) => string
}

/** Loads the library when somebody first reads the manual. Until then the relay saves the memory that the library takes. */
export async function loadMarkdown(): Promise<Markdown> {
  const { default: MarkdownIt } = await import('markdown-it')
  const md = new MarkdownIt({ html: false })
  const { rules } = md.renderer
  // A wide table scrolls inside its own box. `tabindex` lets the keyboard scroll it too.
  rules.table_open = () => '<div class="wide" tabindex="0"><table>'
  rules.table_close = () => '</table></div>'
  return {
    page: (text, linkTo) => {
      const tokens = md.parse(text, {})
      nameHeadings(tokens)
      for (const { children } of tokens) if (children !== null) lead(children, linkTo)
      return md.renderer.render(tokens, md.options, {})
    },
    line: (text) => md.renderInline(text),
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
