/** Collects a body of at most `bytesMax` bytes; `null` as soon as it proves longer, and the rest is not read. A cut body throws. */
export async function readBoundedBody(body: AsyncIterable<unknown>, bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop early destroys the stream, and with it the connection: nothing of an endless body is waited for.
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a body chunk is not bytes')
    size += chunk.byteLength
    if (size > bytesMax) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
