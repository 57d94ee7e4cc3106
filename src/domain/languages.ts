const TAG = /^[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8}){0,4}$/

/**
 * Parses a language tag, in lower case, so that `SV` and `sv` are the same. Some platforms write a tag with `_`, which is read as `-`
 * (DOMAIN 4.1). `null`: it is not a tag.
 */
export function parseLanguageTag(text: unknown): string | null {
  if (typeof text !== 'string' || !TAG.test(text)) return null
  const tag = text.toLowerCase()
  // Looking for `_` costs less than replacing. Every answer needs a tag, and a tag hardly ever has a `_`.
  return tag.includes('_') ? tag.replaceAll('_', '-') : tag
}

/** The languages to try, in order (DOMAIN 4.1): the requested tag, its primary subtag, then the configured languages. */
export function languagePreference(asked: string | null, configured: readonly string[]): readonly string[] {
  const wanted = asked === null ? [] : [asked, primarySubtag(asked)]
  return [...new Set([...wanted, ...configured])]
}

/**
 * The configured language in which to ask the carrier if an app requests `asked` (DOMAIN 4.2): the same tag, or its primary subtag; null:
 * neither is configured.
 */
export function fetchableLanguage(asked: string, configured: readonly string[]): string | null {
  return [asked, primarySubtag(asked)].find((tag) => configured.includes(tag)) ?? null
}

/** The part of a tag before the first hyphen. */
export function primarySubtag(tag: string): string {
  const end = tag.indexOf('-')
  return end === -1 ? tag : tag.slice(0, end)
}
