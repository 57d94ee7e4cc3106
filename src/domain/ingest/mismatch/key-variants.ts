import { causeOf, type MismatchCause } from './mismatch-causes.ts'

/** A key with a name. The name is shown to people; the key is never shown. */
export interface NamedKey {
  /** Such as `webhook.sharedKeys[0]`. */
  readonly name: string
  readonly key: string
}

/** Bytes that a sender may have used as the key. `causes`: the mistakes that turn the key into these bytes. */
export interface KeyVariant {
  readonly name: string
  readonly bytes: Uint8Array
  readonly causes: readonly MismatchCause[]
}

/** Returns the right bytes of a key: its text in UTF-8. */
export function plainKey({ name, key }: NamedKey): KeyVariant {
  return { name, bytes: Buffer.from(key, 'utf8'), causes: [] }
}

/** Returns the wrong bytes into which senders turn a key by usual mistakes. */
export function keyVariants({ name, key }: NamedKey): readonly KeyVariant[] {
  const variants: KeyVariant[] = []
  const add = (bytes: Uint8Array | string, ...causes: readonly MismatchCause[]) => {
    const made = typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes
    if (made.length > 0 && !Buffer.from(key, 'utf8').equals(made)) variants.push({ name, bytes: made, causes })
  }
  add(`${key}\n`, causeOf('key_newline'))
  add(`${key}\r\n`, causeOf('key_newline'))
  for (const spaced of [`${key} `, ` ${key}`, `\t${key}`, `${key}\t`]) add(spaced, causeOf('key_extra_space'))
  add(key.trim(), causeOf('key_white_space'))
  add(/^(["'])(.+)\1$/s.exec(key)?.[2] ?? key, causeOf('key_unquoted'))
  add(`"${key}"`, causeOf('key_quoted'))
  add(`'${key}'`, causeOf('key_quoted'))
  const text = key.trim()
  if (/^[A-Za-z0-9+/_-]{8,}={0,2}$/.test(text)) add(Buffer.from(text, 'base64'), causeOf('key_base64_decoded'))
  if (/^(?:[0-9A-Fa-f]{2}){4,}$/.test(text)) add(Buffer.from(text, 'hex'), causeOf('key_hex_decoded'))
  if (text.startsWith('whsec_')) {
    add(Buffer.from(text.slice('whsec_'.length), 'base64'), causeOf('key_prefix'))
    add(text.slice('whsec_'.length), causeOf('key_prefix'))
  }
  add(`whsec_${key}`, causeOf('key_prefix_added'))
  add(key.replace(/=+$/, ''), causeOf('key_unpadded'))
  for (const form of ['NFC', 'NFD'] as const) add(key.normalize(form), causeOf('key_normalised', `the sender uses ${form}`))
  const bytes = Buffer.from(key, 'utf8')
  add(bytes.toString('base64'), causeOf('key_base64_encoded'))
  add(bytes.toString('hex'), causeOf('key_hex_encoded'))
  add(key.toUpperCase(), causeOf('key_case', 'upper case'))
  add(key.toLowerCase(), causeOf('key_case', 'lower case'))
  add(key.replaceAll('+', ' '), causeOf('key_percent'))
  add(encodeURIComponent(key.toWellFormed()), causeOf('key_percent'))
  add(
    key.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    causeOf('key_percent'),
  )
  add(`\uFEFF${key}`, causeOf('key_bom'))
  add(Buffer.from(key, 'utf16le'), causeOf('key_utf16'))
  add(Buffer.from(key, 'latin1'), causeOf('key_latin1'))
  return variants
}

/** An empty key. Senders use it if their key is not configured. */
export const EMPTY_KEY: KeyVariant = { name: 'no key', bytes: new Uint8Array(), causes: [causeOf('key_empty')] }
