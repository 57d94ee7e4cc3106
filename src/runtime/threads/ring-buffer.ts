import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import { createEventDecoder, createEventEncoder } from './event-codec.ts'

/**
 * Pushes on their way to the thread that records them, in memory that both threads see: no message is made of them, and the thread takes
 * what is there when it comes to it. One side only puts in, the other only takes out. It is a plain value, so it can be handed to a thread.
 */
export interface RingBuffer {
  /** Entries one after the other, each of whole words: a head, the body, the content encoding and what the body says, as far as it was not said before. */
  readonly memory: SharedArrayBuffer
  /** Where the next entry is taken from, where the next is put, how often was looked for any, and how many were put. */
  readonly state: Int32Array
}

/** In the place of a body's length: what else travels with the pushes in their order, and comes by another way. */
const ELSEWHERE = -1
/** The same: nothing more fits before the end of the memory, it goes on at the beginning. */
const TURN = -2
/** In the place of a content encoding's length: there is none. */
const NONE = -1

const TAKEN_TO = 0
const PUT_TO = 1
const LOOKS = 2
/** Turns, like the looks, where a number of 32 bits does. */
const PUTS = 3

const WORD = 8
/** The head's numbers of 32 bits, by their place in it. */
const BODY_BYTES = 0
const ENCODING_BYTES = 1
const TEXT_BYTES = 2
const KEY_INDEX = 3
/** Its numbers of 64 bits. */
const RECEIVED_AT = 2
const EVENT_AT = 3
/** After them another of 32 bits. */
const CONTENT = 8
const HEAD_BYTES = 5 * WORD

export function createRingBuffer(bytes: number): RingBuffer {
  return {
    memory: new SharedArrayBuffer(wholeWords(bytes)),
    state: new Int32Array(new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT)),
  }
}

export interface RingProducer {
  /** False: there is no room now. */
  put(push: IncomingPush): boolean
  /** The same for something that comes by another way: only its place is kept. */
  putElsewhere(): boolean
  /** How often was looked for entries so far, up to where a number of 32 bits turns. */
  looks(): number
}

/** For the side that puts in. */
export function openProducer({ memory, state }: RingBuffer): RingProducer {
  const { bytes, numbers, times } = viewOf(memory)
  const packer = createEventEncoder()

  /** Where an entry of so many bytes may begin; null: nowhere now. An end that meets the beginning would read as empty. */
  function room(wanted: number): number | null {
    const from = Atomics.load(state, TAKEN_TO)
    const to = Atomics.load(state, PUT_TO)
    if (to < from) return to + wanted < from ? to : null
    if (to + wanted < memory.byteLength || (to + wanted === memory.byteLength && from > 0)) return to
    if (wanted >= from) return null
    numbers[to / 4] = TURN
    return 0
  }

  function publish(end: number): void {
    Atomics.add(state, PUTS, 1)
    Atomics.store(state, PUT_TO, end === memory.byteLength ? 0 : end)
  }

  return {
    put({ body, contentEncoding, keyIndex, receivedAtMs, reading }) {
      const { text, content } = packer.pack(reading)
      const textBytes = Buffer.byteLength(text)
      const encodingBytes = contentEncoding === null ? 0 : Buffer.byteLength(contentEncoding)
      const wanted = wholeWords(HEAD_BYTES + body.byteLength + encodingBytes + textBytes)
      const at = room(wanted)
      if (at === null) return false
      numbers[at / 4 + BODY_BYTES] = body.byteLength
      numbers[at / 4 + ENCODING_BYTES] = contentEncoding === null ? NONE : encodingBytes
      numbers[at / 4 + TEXT_BYTES] = textBytes
      numbers[at / 4 + KEY_INDEX] = keyIndex
      numbers[at / 4 + CONTENT] = content
      times[at / WORD + RECEIVED_AT] = receivedAtMs
      times[at / WORD + EVENT_AT] = reading.ok ? reading.observation.sighting.instant.atMs : 0
      const bodyAt = at + HEAD_BYTES
      bytes.set(body, bodyAt)
      if (contentEncoding !== null) bytes.write(contentEncoding, bodyAt + body.byteLength)
      bytes.write(text, bodyAt + body.byteLength + encodingBytes)
      publish(at + wanted)
      packer.sent()
      return true
    },
    putElsewhere() {
      const at = room(WORD)
      if (at === null) return false
      numbers[at / 4 + BODY_BYTES] = ELSEWHERE
      publish(at + WORD)
      return true
    },
    looks: () => Atomics.load(state, LOOKS),
  }
}

export interface RingConsumer<Other> {
  /** How many were put and not taken yet. */
  count(): number
  /** At most so many, in the order they were put. Their bytes are copies. */
  take(most: number): (IncomingPush | Other)[]
}

/** For the side that takes out. `elsewhere` gives what came by another way, in its order; undefined: it is not there yet, and is waited for. */
export function openConsumer<Other>({ memory, state }: RingBuffer, elsewhere: () => Other | undefined): RingConsumer<Other> {
  const { bytes, numbers, times } = viewOf(memory)
  const unpackReading = createEventDecoder()
  let takenSoFar = 0

  const number = (at: number, place: number) => numbers[at / 4 + place] ?? 0
  const time = (at: number, place: number) => times[at / WORD + place] ?? 0
  const sizeOf = (at: number) =>
    wholeWords(HEAD_BYTES + number(at, BODY_BYTES) + Math.max(0, number(at, ENCODING_BYTES)) + number(at, TEXT_BYTES))

  function read(at: number): IncomingPush {
    const bodyEnd = at + HEAD_BYTES + number(at, BODY_BYTES)
    const encodingBytes = number(at, ENCODING_BYTES)
    const textAt = bodyEnd + Math.max(0, encodingBytes)
    const text = bytes.toString('utf8', textAt, textAt + number(at, TEXT_BYTES))
    return {
      kind: 'push',
      body: Buffer.from(bytes.subarray(at + HEAD_BYTES, bodyEnd)),
      contentEncoding: encodingBytes === NONE ? null : bytes.toString('utf8', bodyEnd, textAt),
      keyIndex: number(at, KEY_INDEX),
      receivedAtMs: time(at, RECEIVED_AT),
      reading: unpackReading({ text, content: number(at, CONTENT) }, time(at, EVENT_AT)),
    }
  }

  return {
    count: () => (Atomics.load(state, PUTS) - takenSoFar) | 0,
    take(most) {
      // Before looking: who puts something in and sees that nobody has looked since knows that it will be found.
      Atomics.add(state, LOOKS, 1)
      const to = Atomics.load(state, PUT_TO)
      const taken: (IncomingPush | Other)[] = []
      let at = Atomics.load(state, TAKEN_TO)
      while (at !== to && taken.length < most) {
        const first = number(at, BODY_BYTES)
        if (first === TURN) {
          at = 0
          continue
        }
        const other = first === ELSEWHERE ? elsewhere() : read(at)
        if (other === undefined) break
        taken.push(other)
        at += first === ELSEWHERE ? WORD : sizeOf(at)
        if (at === memory.byteLength) at = 0
      }
      Atomics.store(state, TAKEN_TO, at)
      takenSoFar = (takenSoFar + taken.length) | 0
      return taken
    },
  }
}

function viewOf(memory: SharedArrayBuffer) {
  return { bytes: Buffer.from(memory), numbers: new Int32Array(memory), times: new Float64Array(memory) }
}

function wholeWords(bytes: number): number {
  return Math.ceil(bytes / WORD) * WORD
}
