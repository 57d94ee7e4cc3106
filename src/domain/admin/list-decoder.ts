/** Decodes the text of a list piece by piece. */
export interface ListDecoder {
  /** Returns the text of a piece. A character that is cut off at its end is returned with the next piece. */
  write(bytes: Uint8Array): string
  /** Returns the rest of the text, after the last piece. */
  end(): string
}

/**
 * Creates a decoder for a list. A list that begins with the byte order mark of UTF-16 is decoded as UTF-16 ("Unicode text" of spreadsheets), any
 * other list as UTF-8. The mark is dropped.
 */
export function createListDecoder(): ListDecoder {
  let decoder: InstanceType<typeof TextDecoder> | null = null
  let start: Uint8Array = new Uint8Array()

  function begin(): string {
    decoder = new TextDecoder(encodingOf(start))
    return decoder.decode(start, { stream: true })
  }

  return {
    write(bytes) {
      if (decoder !== null) return decoder.decode(bytes, { stream: true })
      const joined = new Uint8Array(start.length + bytes.length)
      joined.set(start)
      joined.set(bytes, start.length)
      start = joined
      return start.length < 2 ? '' : begin()
    },
    end() {
      const text = decoder === null ? begin() : ''
      return text + (decoder?.decode() ?? '')
    },
  }
}

function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
}
