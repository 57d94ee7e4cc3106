import { fail } from 'node:assert/strict'
import Database from 'better-sqlite3'

/** What the store holds of a push: "stored" is a committed row, "none" is no row. */
export interface InboxRow {
  readonly body: Buffer
  readonly state: 'recorded' | 'quarantined' | 'expired'
  readonly reason: string | null
  readonly parcelId: number | null
  readonly keyIndex: number
  readonly contentEncoding: string | null
  readonly duplicates: number
}

const COLUMNS = 'body, state, reason, parcel_id, key_index, content_encoding, duplicates'
const STATES = ['recorded', 'quarantined', 'expired'] as const

/** The inbox of a running relay, read from its database file on a connection of its own that cannot write. */
export function openInbox(databasePath: string) {
  const db = new Database(databasePath, { readonly: true, fileMustExist: true })
  const byBody = db.prepare(`SELECT ${COLUMNS} FROM inbox WHERE body = ?`)
  const count = db.prepare('SELECT count(*) FROM inbox').pluck()
  const rowsOf = (body: string | Uint8Array) => byBody.all(Buffer.from(body)).map(decodeRow)
  return {
    /** Rows whose bytes are exactly these. */
    rowsOf,
    /** The only row with exactly these bytes. */
    rowOf(body: string | Uint8Array): InboxRow {
      const rows = rowsOf(body)
      return rows[0] !== undefined && rows.length === 1 ? rows[0] : fail(`${rows.length} rows hold these bytes, not one`)
    },
    count: () => Number(count.get()),
    close: () => void db.close(),
  }
}

function decodeRow(row: unknown): InboxRow {
  if (typeof row !== 'object' || row === null) return fail('no row')
  const columns: Readonly<Record<string, unknown>> = { ...row }
  const { body, reason, content_encoding: contentEncoding, parcel_id: parcelId } = columns
  return {
    body: Buffer.isBuffer(body) ? body : fail('a body that is no bytes'),
    state: STATES[Number(columns.state)] ?? fail(`no state: ${String(columns.state)}`),
    reason: typeof reason === 'string' ? reason : null,
    parcelId: typeof parcelId === 'number' && parcelId > 0 ? parcelId : null,
    keyIndex: Number(columns.key_index),
    contentEncoding: typeof contentEncoding === 'string' ? contentEncoding : null,
    duplicates: Number(columns.duplicates),
  }
}
