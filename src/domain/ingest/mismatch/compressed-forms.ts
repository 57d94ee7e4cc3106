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

export interface CompressedForm {
  readonly bytes: Uint8Array
  /** The name of the format. */
  readonly how: string
}

/** Larger results are not tried, because even a small body could decompress to gigabytes. */
const DECOMPRESSED_BYTES_MAX = 1024 * 1024
/** Larger bodies are not compressed, because it would take too long. */
const COMPRESSED_BYTES_MAX = 32 * 1024

/** Tries the usual formats. Yields nothing if the body is not compressed. */
export function* decompressions(body: Uint8Array): Generator<CompressedForm, undefined> {
  const bounds = { maxOutputLength: DECOMPRESSED_BYTES_MAX }
  const formats = [
    ['gzip', gunzipSync],
    ['deflate', inflateSync],
    ['deflate without a header', inflateRawSync],
    ['brotli', brotliDecompressSync],
    ['zstd', zstdDecompressSync],
  ] as const
  // It takes long to try all formats, so do not try a body that looks like JSON.
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

/** Compressors write a code for the operating system into the header of gzip. These are Unix, unknown, FAT and NTFS. */
const GZIP_SYSTEMS = [3, 255, 0, 10]
const SYSTEM_AT = 9

/** Compresses a body as the usual programs do. Other programs may produce other bytes. */
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
  // Higher qualities take many milliseconds even for a small body, and servers do not use them.
  for (const quality of [4, 5, 6])
    yield { bytes: brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }), how: 'brotli' }
}
