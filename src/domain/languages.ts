const TAG = /^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/

/** Reads a language tag, in lower case so that `SV` and `sv` are one; `null`: not a tag. */
export function parseLanguageTag(text: unknown): string | null {
  return typeof text === 'string' && TAG.test(text) ? text.toLowerCase() : null
}

/** The languages to try in order (DOMAIN 4.1): the exact tag asked, its primary subtag, then the configured ones. */
export function languagePreference(asked: string | null, configured: readonly string[]): readonly string[] {
  const wanted = asked === null ? [] : [asked, primarySubtag(asked)]
  return [...new Set([...wanted, ...configured])]
}

/** The configured language that the carrier may be asked in for the one an app asked (DOMAIN 4.2): it, or its primary subtag; null: none. */
export function fetchableLanguage(asked: string, configured: readonly string[]): string | null {
  return [asked, primarySubtag(asked)].find((tag) => configured.includes(tag)) ?? null
}

export function primarySubtag(tag: string): string {
  const end = tag.indexOf('-')
  return end === -1 ? tag : tag.slice(0, end)
}
