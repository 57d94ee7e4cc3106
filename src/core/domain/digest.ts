import { hash } from 'node:crypto'

/** Returns the SHA-256 of bytes, or of a text in UTF-8, as 43 characters that are safe in headers and URLs (base64url). */
export function digest(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url')
}

/** Returns a strong entity tag (RFC 9110, 8.8.3). Two answers have the same tag only if their bytes and languages are the same. */
export function entityTag(body: string, contentLanguage: string): string {
  return `"${digest(`${contentLanguage}\n${body}`)}"`
}
