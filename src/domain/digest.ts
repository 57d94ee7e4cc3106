import { hash } from 'node:crypto'

/** SHA-256 of bytes, or of the UTF-8 bytes of a text, as 43 characters that are safe in headers, URLs and keys. */
export function digest(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url')
}

/** A strong entity tag. It is equal only for equal bytes in equal languages (RFC 9110, 8.8.3). */
export function entityTag(body: string, contentLanguage: string): string {
  return `"${digest(`${contentLanguage}\n${body}`)}"`
}
