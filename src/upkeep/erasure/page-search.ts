/** A part of a buffer. `from`: its first byte. `to`: the byte after its last. */
export interface Part {
  readonly from: number
  readonly to: number
}

/** A page in a buffer. `head`: the length of the file's header, with which the first page of a file begins; 0 for any other page. */
export interface Page extends Part {
  readonly head: number
}

/** The length of the header of a b-tree page, by the page's type (https://sqlite.org/fileformat2.html#b_tree_pages). */
const HEADER_BYTES: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 }
/** Offsets in the header of a b-tree page. */
const FIRST_FREEBLOCK = 1
const CELL_COUNT = 3
const CONTENT_START = 5
/** A freeblock begins with the offset of the next one and its own size. */
const FREEBLOCK_BYTES = 4

/**
 * Finds the parts of a page that SQLite does not use: the gap between the pointers to cells and the cells, and the free blocks among the
 * cells. When SQLite moves cells to other pages, it leaves copies in the gap, even with `secure_delete`. Only b-tree pages have unused parts:
 * an overflow page is written whole, and a free page is overwritten.
 */
export function unusedParts(bytes: Buffer, { from, to, head }: Page): readonly Part[] {
  const header = from + head
  const headerBytes = HEADER_BYTES[bytes.readUInt8(header)]
  if (headerBytes === undefined) return []
  const at = (offset: number) => bytes.readUInt16BE(offset)
  const gap = { from: header + headerBytes + 2 * at(header + CELL_COUNT), to: from + (at(header + CONTENT_START) || 65_536) }
  // An overflow page may begin like a b-tree page, with offsets that make no sense.
  if (gap.from > gap.to || gap.to > to) return []
  const parts = [gap]
  for (let block = from + at(header + FIRST_FREEBLOCK); block > from; ) {
    const end = block + at(block + 2)
    if (block < gap.to || end > to || end < block + FREEBLOCK_BYTES) return []
    parts.push({ from: block + FREEBLOCK_BYTES, to: end })
    const next = from + at(block)
    if (next !== from && next < end) return []
    block = next
  }
  return parts
}

/** Finds the bytes of a page that are not in `unusedParts`. */
export function usedParts(bytes: Buffer, page: Page): readonly Part[] {
  const used: Part[] = []
  let from = page.from
  for (const part of unusedParts(bytes, page)) {
    used.push({ from, to: part.from })
    from = part.to
  }
  used.push({ from, to: page.to })
  return used
}

/** A word to search for: upper-case ASCII letters and digits. */
export interface SoughtWord {
  readonly word: string
  /** Whether the word counts only as a whole word, so that no letter or digit is next to it. */
  readonly isWhole: boolean
}

interface Pattern extends SoughtWord {
  readonly bytes: Buffer
}

/** Words are looked up by this many of their first bytes. A shorter word cannot be searched for. */
const KEY_BYTES = 4
/** Maps each byte to itself, but a lower-case ASCII letter to its upper case. */
const UPPER = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte))
const FILTER_BITS = 18

const slotOf = (key: number) => Math.imul(key, 0x9e3779b1) >>> (32 - FILTER_BITS)

function isWordByte(byte: number): boolean {
  const upper = UPPER[byte] ?? 0
  return (upper >= 0x30 && upper <= 0x39) || (upper >= 0x41 && upper <= 0x5a)
}

/** Makes a function that searches bytes for many words at once, whatever the case of their letters. More words hardly make it slower. */
export function createWordSearch(words: readonly SoughtWord[]): (bytes: Buffer, part: Part, onFound: (word: string) => void) => void {
  const filter = new Uint8Array(1 << FILTER_BITS)
  const byKey = new Map<number, Pattern[]>()
  for (const { word, isWhole } of words) {
    const bytes = Buffer.from(word, 'latin1')
    if (bytes.length < KEY_BYTES) throw new Error(`a word of ${bytes.length} bytes is too short to search for`)
    const key = bytes.readInt32BE(0)
    filter[slotOf(key)] = 1
    byKey.set(key, [...(byKey.get(key) ?? []), { word, isWhole, bytes }])
  }

  function stands({ bytes: wanted, isWhole }: Pattern, bytes: Buffer, start: number, { from, to }: Part): boolean {
    const end = start + wanted.length
    if (end > to) return false
    for (let at = KEY_BYTES; at < wanted.length; at++) if (UPPER[bytes[start + at] ?? 0] !== wanted[at]) return false
    return !isWhole || !((start > from && isWordByte(bytes[start - 1] ?? 0)) || (end < to && isWordByte(bytes[end] ?? 0)))
  }

  return (bytes, part, onFound) => {
    let key = 0
    for (let at = part.from; at < part.to; at++) {
      key = (key << 8) | (UPPER[bytes[at] ?? 0] ?? 0)
      if (filter[slotOf(key)] === 0) continue
      const start = at - KEY_BYTES + 1
      if (start < part.from) continue
      for (const pattern of byKey.get(key) ?? []) if (stands(pattern, bytes, start, part)) onFound(pattern.word)
    }
  }
}
