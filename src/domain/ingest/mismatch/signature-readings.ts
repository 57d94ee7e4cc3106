import { causeOf, type MismatchCause } from './mismatch-causes.ts'

/** A digest, as read from a signature header. One header may be read as several digests. */
export interface SignatureReading {
  readonly digest: Uint8Array
  /** How the header differs from strict Base64; empty: it is strict Base64. */
  readonly causes: readonly MismatchCause[]
  /** The time next to the digest, as in `t=1700000000,v1=...`; null: the header has no time. */
  readonly time: string | null
}

/** Longer headers are not read, because no sender writes them. */
const CHARS_MAX = 1024
const DIGEST_BYTES_MIN = 8

interface Peeled {
  readonly text: string
  readonly causes: readonly MismatchCause[]
  readonly time: string | null
}

/** Reads a header value in all notations that senders use for digests. Empty: the value is not a digest in any of them. */
export function readSignature(value: string): readonly SignatureReading[] {
  if (value.length > CHARS_MAX) return []
  const { text, causes, time } = peel(value)
  return decode(text).map((reading) => ({ digest: reading.digest, causes: [...causes, ...reading.causes], time }))
}

/** Removes all that surrounds the digest, such as quotes and a prefix. */
function peel(value: string): Peeled {
  const causes: MismatchCause[] = []
  let text = value
  let time: string | null = null
  const take = (next: string, cause: MismatchCause) => {
    if (next === text) return
    text = next
    if (!causes.some(({ code }) => code === cause.code)) causes.push(cause)
  }
  take(text.replace(/\s+/g, ''), causeOf('signature_white_space'))
  take(/^(["'])(.*)\1$/s.exec(text)?.[2] ?? text, causeOf('signature_quoted'))
  if (/%[0-9A-Fa-f]{2}/.test(text)) take(text.replace(/%([0-9A-Fa-f]{2})/g, percentDecoded), causeOf('signature_percent'))
  const timed = /^t=(\d{1,20}),(?:.*,)?v\d=([^,]+)/.exec(text)
  if (timed !== null) {
    time = timed[1] ?? null
    take(timed[2] ?? text, causeOf('signature_prefix'))
  }
  const prefix = /^(?:(?:hmac-?)?sha-?\d{1,3}|md5|hmac|v\d|signature|digest)[=:,]/i.exec(text)?.[0] ?? ''
  take(text.slice(prefix.length), causeOf('signature_prefix', prefix === '' ? null : prefix))
  take(/^(["'])(.*)\1$/s.exec(text)?.[2] ?? text, causeOf('signature_quoted'))
  return { text, causes, time }
}

function percentDecoded(_: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

function decode(text: string): readonly Omit<SignatureReading, 'time'>[] {
  const readings: Omit<SignatureReading, 'time'>[] = []
  if (/^(?:[0-9A-Fa-f]{2}){8,64}$/.test(text)) readings.push({ digest: Buffer.from(text, 'hex'), causes: [causeOf('signature_hex')] })
  const base64 = /^([A-Za-z0-9+/_-]+)(=*)$/.exec(text)
  if (base64 === null) return readings
  const [, letters = '', padding = ''] = base64
  const digest = Buffer.from(letters, 'base64')
  if (digest.length < DIGEST_BYTES_MIN) return readings
  const causes: MismatchCause[] = []
  if (/[-_]/.test(letters)) causes.push(causeOf('signature_url_safe'))
  if (padding.length < (3 - (digest.length % 3)) % 3) causes.push(causeOf('signature_unpadded'))
  const standard = digest.toString('base64')
  if (causes.length === 0 && standard !== text) causes.push(causeOf('signature_bits'))
  const inner = digest.toString('latin1')
  if (/^(?:[0-9A-Fa-f]{2}){8,64}$/.test(inner))
    readings.push({ digest: Buffer.from(inner, 'hex'), causes: [...causes, causeOf('signature_double', 'of hexadecimal')] })
  else if (/^[A-Za-z0-9+/_-]{22,86}={0,2}$/.test(inner))
    readings.push({ digest: Buffer.from(inner, 'base64'), causes: [...causes, causeOf('signature_double', 'of Base64')] })
  readings.push({ digest, causes })
  return readings
}
