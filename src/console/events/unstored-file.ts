import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { writeWhole } from '../../core/store/sqlite/whole-file.ts'

/**
 * A file of a fixed size beside the store, for what must survive a restart while the store cannot be written. Its blocks exist from the start and
 * are written over, so a full disk does not matter (except on file systems that never overwrite, such as btrfs and ZFS).
 */
export interface UnstoredFile<Item> {
  /** What was written last; empty: nothing. Never throws. */
  read(): readonly Item[]
  /** Leaves out the last items if not all fit. Rejects if the file cannot be written. */
  write(items: readonly Item[]): Promise<void>
}

/** What is written goes in turns into two halves, so that a kill in the middle of a write leaves what was there before. */
const HALF_BYTES = 64 * 1024
const HEAD_BYTES = 128
const BLANK = ' '
const EMPTY = Buffer.alloc(2 * HALF_BYTES, BLANK)

interface Half {
  readonly turn: number
  readonly text: string
}

/** Makes the file if it is not there. If that fails, the next write tries again. */
export function openUnstoredFile<Item>(storePath: string): UnstoredFile<Item> {
  const path = `${storePath}.unstored`
  const make = () => {
    if (statSync(path, { throwIfNoEntry: false })?.size !== EMPTY.length) writeWhole(path, EMPTY)
  }
  try {
    make()
  } catch {
    // There is no room, or the folder cannot be written. Then the store's own failure is what matters.
  }
  let turn = newest(path)?.turn ?? 0

  async function writeHalf(text: string): Promise<void> {
    turn += 1
    const file = await open(path, 'r+')
    try {
      await file.write(encode({ turn, text }), 0, HALF_BYTES, (turn % 2) * HALF_BYTES)
      await file.datasync()
    } finally {
      await file.close()
    }
  }

  return {
    // This version of the relay or an earlier one has written the items.
    read: () => JSON.parse(newest(path)?.text ?? '[]') as readonly Item[],
    async write(items) {
      make()
      const text = whatFits(items)
      await writeHalf(text)
      // Then nothing may stay in the other half for good.
      if (items.length === 0) await writeHalf(text)
    },
  }
}

function whatFits(items: readonly unknown[]): string {
  const text = JSON.stringify(items)
  return Buffer.byteLength(text) <= HALF_BYTES - HEAD_BYTES ? text : whatFits(items.slice(0, -1))
}

function newest(path: string): Half | null {
  try {
    const bytes = readFileSync(path)
    const halves = [0, HALF_BYTES].map((from) => decode(bytes.subarray(from, from + HALF_BYTES)))
    return halves.reduce((best, one) => (one !== null && one.turn > (best?.turn ?? -1) ? one : best), null)
  } catch {
    return null
  }
}

function digestOf(turn: number, text: string): string {
  return createHash('sha256').update(`${turn} ${text}`).digest('hex')
}

function encode({ turn, text }: Half): Buffer {
  const content = Buffer.from(text)
  const bytes = Buffer.alloc(HALF_BYTES, BLANK)
  bytes.write(`${turn} ${content.length} ${digestOf(turn, text)}`)
  content.copy(bytes, HEAD_BYTES)
  return bytes
}

/** Null: the half is blank, or its write was cut off. */
function decode(bytes: Buffer): Half | null {
  const [turn = 0, length = 0, digest] = bytes
    .toString('utf8', 0, HEAD_BYTES)
    .split(' ')
    .map((part, at) => (at < 2 ? Number(part) : part))
  if (typeof turn !== 'number' || typeof length !== 'number') return null
  const text = bytes.toString('utf8', HEAD_BYTES, HEAD_BYTES + length)
  return digest === digestOf(turn, text) ? { turn, text } : null
}
