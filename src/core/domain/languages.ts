const TAG = /^[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8}){0,4}$/

/**
 * Parses a language tag. Makes it lower-case, so that `SV` and `sv` are the same, and replaces `_`, which some platforms write, by `-`
 * (DOMAIN 4.1). Null: the text is not a language tag.
 */
export function parseLanguageTag(text: unknown): string | null {
  if (typeof text !== 'string' || !TAG.test(text)) return null
  const tag = text.toLowerCase()
  // Each answer parses a tag, and hardly any tag has a `_`. Looking for a `_` is faster than `replaceAll`.
  return tag.includes('_') ? tag.replaceAll('_', '-') : tag
}

/** Returns the languages to try, in order (DOMAIN 4.1): the requested tag, its primary subtag, then the configured languages. */
export function languagePreference(asked: string | null, configured: readonly string[]): readonly string[] {
  const wanted = asked === null ? [] : [asked, primarySubtag(asked)]
  return [...new Set([...wanted, ...configured])]
}

/**
 * Returns the configured language in which to ask the carrier if an app asks for the language `asked` (DOMAIN 4.2): the same tag, or else
 * its primary subtag. Null: neither is configured.
 */
export function fetchableLanguage(asked: string, configured: readonly string[]): string | null {
  return [asked, primarySubtag(asked)].find((tag) => configured.includes(tag)) ?? null
}

/** Returns the part of a tag before its first hyphen: `sv` for `sv-se`. */
export function primarySubtag(tag: string): string {
  const end = tag.indexOf('-')
  return end === -1 ? tag : tag.slice(0, end)
}
