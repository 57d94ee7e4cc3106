/** A body as it comes in. */
export interface Body {
  /** How many bytes it would hold with so many more: where it grows it makes room for what may follow. */
  heldWith(more: number): number
  add(chunk: Buffer): void
  /** All of it. It is not to be added to afterwards. */
  bytes(): Buffer
  /** Nobody will ask for it. */
  forget(): void
}

/** Smaller pieces are left to the collector: it has them soon, and giving them back costs more than it brings. */
const GIVEN_BACK_BYTES_MIN = 16 * 1024
const NOTHING = Buffer.alloc(0)

/**
 * Collects a body of at most so many bytes, and holds no byte of it twice: nearly every one comes in one piece, which is the body; pieces of a
 * larger one are copied to where it grows, and given back.
 */
export function createBody(bytesMax: number): Body {
  let kept: Buffer = NOTHING
  let length = 0
  const heldWith = (more: number): number => {
    if (length === 0) return more
    return length + more <= kept.length ? kept.length : Math.max(length + more, Math.min(bytesMax, 2 * kept.length))
  }
  return {
    heldWith,
    add(chunk) {
      if (length === 0) {
        kept = chunk
        length = chunk.length
        return
      }
      if (length + chunk.length > kept.length) {
        const larger = Buffer.allocUnsafeSlow(heldWith(chunk.length))
        larger.set(length < kept.length ? kept.subarray(0, length) : kept)
        giveBackSoon(kept)
        kept = larger
      }
      kept.set(chunk, length)
      length += chunk.length
      giveBackSoon(chunk)
    },
    bytes: () => (length === kept.length ? kept : kept.subarray(0, length)),
    forget() {
      giveBackSoon(kept)
      kept = NOTHING
      length = 0
    },
  }
}

/**
 * Gives memory back at once that nothing looks at any more. The collector goes by the objects it sees, and those of a flood of bodies are few
 * and small: without this, hundreds of megabytes would wait for it.
 */
export function giveBack(bytes: Buffer): void {
  const { buffer } = bytes
  // Of a part others may have the rest.
  if (bytes.length < GIVEN_BACK_BYTES_MIN || bytes.length < buffer.byteLength) return
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}

/** The same once the platform is through with telling of it: it may still be in the middle of these very bytes. */
export function giveBackSoon(bytes: Buffer): void {
  if (bytes.length >= GIVEN_BACK_BYTES_MIN) queueMicrotask(() => giveBack(bytes))
}
