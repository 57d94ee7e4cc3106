const HEAD_END = Buffer.from('\r\n\r\n')
const CHUNK_LINE_END = Buffer.from('\r\n')
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i
const CHUNKED = /\r\ntransfer-encoding: *chunked/i
/** Offset of the status: after `HTTP/1.1 `. */
const STATUS_AT = 9

/** Takes bytes from a socket, in chunks of any size. Does not keep the buffer. */
export type AnswerReader = (bytes: Buffer) => void

/** Parses only as much of each response as it takes to find its end. */
export function createAnswerReader(onAnswer: (status: number, bodyBytes: number) => void): AnswerReader {
  let kept: Buffer | null = null
  let status = 0
  let bodyBytes = 0
  /** Bytes of the current body still to come. */
  let left = 0

  const answered = () => {
    // 1xx responses are interim.
    if (status >= 200) onAnswer(status, bodyBytes)
  }

  /** Returns the offset of the next response, or -1 if more bytes are needed. */
  const readOne = (bytes: Buffer, from: number): number => {
    const headEnd = bytes.indexOf(HEAD_END, from)
    if (headEnd === -1) return -1
    const head = bytes.toString('latin1', from, headEnd)
    const bodyFrom = headEnd + HEAD_END.length
    status = Number(head.slice(STATUS_AT, STATUS_AT + 3))
    if (CHUNKED.test(head)) {
      const body = endOfChunks(bytes, bodyFrom)
      if (body === null) return -1
      bodyBytes = body.bytes
      answered()
      return body.end
    }
    bodyBytes = Number(CONTENT_LENGTH.exec(head)?.[1] ?? 0)
    const end = bodyFrom + bodyBytes
    left = Math.max(0, end - bytes.length)
    if (left === 0) answered()
    return Math.min(end, bytes.length)
  }

  return (read) => {
    let from = 0
    if (left > 0) {
      from = Math.min(left, read.length)
      left -= from
      if (left === 0) answered()
    }
    if (from === read.length) return
    const bytes: Buffer = kept === null ? read : Buffer.concat([kept, read])
    kept = null
    while (from < bytes.length) {
      const next = readOne(bytes, from)
      if (next === -1) {
        kept = Buffer.from(bytes.subarray(from))
        return
      }
      from = next
    }
  }
}

function endOfChunks(bytes: Buffer, from: number): { readonly end: number; readonly bytes: number } | null {
  let at = from
  let total = 0
  for (;;) {
    const lineEnd = bytes.indexOf(CHUNK_LINE_END, at)
    if (lineEnd === -1) return null
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    at = lineEnd + CHUNK_LINE_END.length + size + CHUNK_LINE_END.length
    if (at > bytes.length) return null
    total += size
    if (size === 0) return { end: at, bytes: total }
  }
}
