import type { KeptTombstones, MarkedTombstone } from '../domain/history/erased.ts'
import { isObject, member } from '../domain/json-body.ts'

/** Encodes tombstones for a file: one JSON object per line. The first line has the sealed key, if there is one. */
export function encodeTombstones({ sealedKey, tombstones }: KeptTombstones): string {
  return `${sealedKey === null ? '' : `${JSON.stringify({ key: sealedKey })}\n`}${encodeTombstoneLines(tombstones)}`
}

export function encodeTombstoneLines(tombstones: readonly MarkedTombstone[]): string {
  return tombstones.map(encodeLine).join('')
}

export interface DecodedTombstones extends KeptTombstones {
  /** Whether the text ends within a line, because a crash has cut off the write of that line. Its transaction was not committed. */
  readonly isCut: boolean
}

/** Decodes a file of tombstones. Throws if a line other than the last, cut-off one cannot be read. `name` names the file in the message. */
export function decodeTombstones(text: string, name: string): DecodedTombstones {
  const lines = text.split('\n').map(decodeLine)
  const isCut = lines.at(-1) === null
  const whole = isCut ? lines.slice(0, -1) : lines
  const unreadable = whole.indexOf(null)
  if (unreadable !== -1) throw new Error(unreadableLine(name, unreadable + 1))
  const read = whole.filter((line) => line !== null)
  const sealedKey = read.flatMap((line) => ('key' in line ? [line.key] : [])).at(-1) ?? null
  return { sealedKey, tombstones: read.flatMap((line) => ('mark' in line ? [line] : [])), isCut }
}

function unreadableLine(name: string, line: number): string {
  return (
    `line ${line} of ${name} cannot be read, so nobody knows which erasure it recorded. Nothing was changed. Put a copy of the file in its place. ` +
    'If there is none, delete that line: if the store lacks that erasure, as after a restore, what was erased comes back. Erase it again then.'
  )
}

function encodeLine({ mark, parcelId, erasedAtMs }: MarkedTombstone): string {
  return `${JSON.stringify({ mark, parcel: parcelId, erasedAt: new Date(erasedAtMs).toISOString() })}\n`
}

/** Null: the line cannot be read. */
function decodeLine(line: string): MarkedTombstone | { readonly key: string } | Record<never, never> | null {
  if (line === '') return {}
  const value = parseLine(line)
  if (value === null) return null
  const [key, mark, parcelId, erasedAt] = ['key', 'mark', 'parcel', 'erasedAt'].map((name) => member(value, name))
  if (typeof key === 'string') return { key }
  if (typeof mark !== 'string' || typeof parcelId !== 'number' || typeof erasedAt !== 'string') return null
  const erasedAtMs = Date.parse(erasedAt)
  return Number.isFinite(erasedAtMs) ? { mark, parcelId, erasedAtMs } : null
}

function parseLine(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
