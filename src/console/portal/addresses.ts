import { html, type Markup, markup } from './html.ts'

/** An address of the portal. Every link and form gets its address from here, so that received text can never become an address. */
export interface Address {
  /** From the root of the host, with the prefix of `portal.publicUrl`, for example `/relay/webhooks/3`. */
  readonly path: string
}

/** Makes the address of a page from a template, and encodes each part of the path. */
export type AddressTag = (texts: TemplateStringsArray, ...parts: readonly (string | number)[]) => Address

/** Makes addresses below a prefix, which is empty or like `/relay`. */
export function createAddresses(prefix: string): AddressTag {
  return (texts, ...parts) => ({
    path: prefix + texts.map((text, at) => text + (at < parts.length ? encodeURIComponent(String(parts[at])) : '')).join(''),
  })
}

/** Returns the address with a query. Parameters that are null or empty are left out. */
export function withQuery(address: Address, query: Readonly<Record<string, string | number | null>>): Address {
  const given = Object.entries(query).flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, String(value)] as const]))
  return given.length === 0 ? address : { path: `${address.path}?${new URLSearchParams(Object.fromEntries(given)).toString()}` }
}

/** Makes a link inside the portal. `extra`: markup of more attributes. */
export function link(to: Address, text: string | Markup, extra: Markup | null = null): Markup {
  return html`<a href="${to.path}"${extra}>${text}</a>`
}

/** Makes a link that looks like a button, because it leads to a form. */
export function buttonLink(to: Address, text: string, kind: 'main' | '' = ''): Markup {
  return link(to, text, markup(` class="btn${kind === '' ? '' : ` ${kind}`}"`))
}
