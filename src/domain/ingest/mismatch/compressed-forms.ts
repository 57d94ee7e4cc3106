import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib'

/** Compressed or decompressed bytes, with the name of the format. */
export interface CompressedForm {
  readonly bytes: Uint8Array
  readonly how: string
}

/** Larger results are not tried, because even a small body could decompress to gigabytes. */
const DECOMPRESSED_BYTES_MAX = 1024 * 1024
/** Larger bodies are not compressed, because it would take too long. */
const COMPRESSED_BYTES_MAX = 32 * 1024

/** Decompresses a body, if it is compressed. */
export function* decompressions(body: Uint8Array): Generator<CompressedForm, undefined> {
  const bounds = { maxOutputLength: DECOMPRESSED_BYTES_MAX }
  const formats = [
    ['gzip', gunzipSync],
    ['deflate', inflateSync],
    ['deflate without a header', inflateRawSync],
    ['brotli', brotliDecompressSync],
    ['zstd', zstdDecompressSync],
  ] as const
  // A body that begins with `{` or `[` counts as plain JSON, because it takes long to try all formats.
  if (body[0] === 0x7b || body[0] === 0x5b) return
  for (const [how, decompress] of formats) {
    const bytes = orNull(() => decompress(body, bounds))
    if (bytes !== null && bytes.length > 0) yield { bytes, how }
  }
}

function orNull(decompress: () => Uint8Array): Uint8Array | null {
  try {
    return decompress()
  } catch {
    return null
  }
}

/** The codes of operating systems that compressors write into the header of gzip: Unix, unknown, FAT, NTFS. */
const GZIP_SYSTEMS = [3, 255, 0, 10]
const SYSTEM_AT = 9

/** Compresses a body as the usual programs do. It does not try the bytes that other programs would produce. */
export function* compressions(body: Uint8Array): Generator<CompressedForm, undefined> {
  if (body.length > COMPRESSED_BYTES_MAX) return
  for (const level of [6, 9, 1]) {
    const packed = gzipSync(body, { level })
    for (const system of GZIP_SYSTEMS) {
      const bytes = Buffer.from(packed)
      bytes[SYSTEM_AT] = system
      yield { bytes, how: 'gzip' }
    }
    yield { bytes: deflateSync(body, { level }), how: 'deflate' }
    yield { bytes: deflateRawSync(body, { level }), how: 'deflate without a header' }
  }
  // Higher qualities are not tried: they take many milliseconds even for a small body, and servers do not use them.
  for (const quality of [4, 5, 6])
    yield { bytes: brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }), how: 'brotli' }
}
