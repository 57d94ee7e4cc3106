/** Reads a body of at most `bytesMax` bytes. Null: the body is longer, and its rest was not read. Throws if the body breaks off. */
export async function readBoundedBody(body: AsyncIterable<unknown>, bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  // A return from the loop destroys the stream and its connection, so an endless body does no harm.
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a body chunk is not bytes')
    size += chunk.byteLength
    if (size > bytesMax) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
