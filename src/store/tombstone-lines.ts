import type { KeptTombstones, MarkedTombstone } from '../domain/history/erased.ts'
import { isObject, member } from '../domain/json-body.ts'

/** Encodes tombstones for a file: one JSON object per line. The first line has the sealed key, if there is one. */
export function encodeTombstones({ sealedKey, tombstones }: KeptTombstones): string {
  return `${sealedKey === null ? '' : `${JSON.stringify({ key: sealedKey })}\n`}${encodeTombstoneLines(tombstones)}`
}

export function encodeTombstoneLines(tombstones: readonly MarkedTombstone[]): string {
  return tombstones.map(encodeLine).join('')
}

/** Decodes a file of tombstones. It skips a line that a crash has cut off, because the transaction of that line was not committed. */
export function decodeTombstones(text: string): KeptTombstones {
  const values = text
    .split('\n')
    .map(parseLine)
    .filter((value) => value !== null)
  const key = values.map((value) => member(value, 'key')).findLast((one) => typeof one === 'string')
  return { sealedKey: typeof key === 'string' ? key : null, tombstones: values.flatMap((value) => decodeLine(value) ?? []) }
}

function encodeLine({ mark, parcelId, erasedAtMs }: MarkedTombstone): string {
  return `${JSON.stringify({ mark, parcel: parcelId, erasedAt: new Date(erasedAtMs).toISOString() })}\n`
}

function parseLine(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function decodeLine(value: Readonly<Record<string, unknown>>): MarkedTombstone | null {
  const [mark, parcelId, erasedAt] = [member(value, 'mark'), member(value, 'parcel'), member(value, 'erasedAt')]
  if (typeof mark !== 'string' || typeof parcelId !== 'number' || typeof erasedAt !== 'string') return null
  const erasedAtMs = Date.parse(erasedAt)
  return Number.isFinite(erasedAtMs) ? { mark, parcelId, erasedAtMs } : null
}
