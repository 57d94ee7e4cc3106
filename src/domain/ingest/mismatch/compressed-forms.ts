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

/** Compressed or decompressed bytes, and by which format. */
export interface CompressedForm {
  readonly bytes: Uint8Array
  readonly how: string
}

/** A small body could decompress into gigabytes, so this is the limit. */
const DECOMPRESSED_BYTES_MAX = 1024 * 1024
/** Compressing more would take too long. */
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
  // JSON text is not compressed, and trying costs more than this look at its first byte.
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

/** The operating systems that compressors name in the header of gzip: Unix, unknown, FAT, NTFS. */
const GZIP_SYSTEMS = [3, 255, 0, 10]
const SYSTEM_AT = 9

/** A body, compressed as the usual compressors do it. Another program may do it differently, so this finds some cases but not all. */
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
  // The best quality takes many milliseconds even for a small body, and servers do not use it.
  for (const quality of [4, 5, 6])
    yield { bytes: brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }), how: 'brotli' }
}
