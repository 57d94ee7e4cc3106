/** Reads a body of at most `bytesMax` bytes. `null`: it is longer, and the rest is not read. Throws if the body breaks off. */
export async function readBoundedBody(body: AsyncIterable<unknown>, bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop destroys the stream and its connection, so an endless body cannot keep us waiting.
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a body chunk is not bytes')
    size += chunk.byteLength
    if (size > bytesMax) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
