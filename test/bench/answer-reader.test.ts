import { expect, test } from 'vitest'
import { createAnswerReader } from '../../bench/load/answer-reader.ts'

const STREAM = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello',
  'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\n\r\n',
].join('')
const ANSWERS = [
  [200, 5],
  [503, 0],
  [200, 13],
  [304, 0],
]

function read(pieces: readonly Buffer[]): readonly (readonly number[])[] {
  const answers: (readonly number[])[] = []
  const reader = createAnswerReader((status, bytes) => answers.push([status, bytes]))
  // Reuse one buffer for all pieces, as a socket does: the reader must not use an earlier piece again.
  const memory = Buffer.alloc(STREAM.length)
  for (const piece of pieces) {
    piece.copy(memory)
    reader(memory.subarray(0, piece.length))
  }
  return answers
}

test('answers are read correctly however the stream is split', () => {
  const bytes = Buffer.from(STREAM)
  expect(read([bytes])).toEqual(ANSWERS)
  for (let size = 1; size < bytes.length; size++) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
    expect(read(pieces), `pieces of ${size} bytes`).toEqual(ANSWERS)
  }
})
