import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'

const UNPACKED_BYTES_MAX = 16 * 1024 * 1024

type Unpack = (body: Uint8Array, options: { readonly maxOutputLength: number }) => Uint8Array

const UNPACKERS: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
])

/** Decompresses a body as its `Content-Encoding` says; null: the encoding is unknown or the body is damaged or too large. */
export function unpackBody(body: Uint8Array, contentEncoding: string | null): Uint8Array | null {
  const names = (contentEncoding ?? '').split(',').map((name) => name.trim().toLowerCase())
  let unpacked = body
  for (const name of names.filter((one) => one !== '' && one !== 'identity').toReversed()) {
    const unpack = UNPACKERS.get(name)
    if (unpack === undefined) return null
    try {
      unpacked = unpack(unpacked, { maxOutputLength: UNPACKED_BYTES_MAX })
    } catch {
      return null
    }
  }
  return unpacked
}
