import { fail } from 'node:assert/strict'
import { storedNumber, storedRows } from '../store/stored-rows.ts'

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

/** Reads the inbox of a running relay from its store. */
export function inboxIn(place: string) {
  const byBody = `select ${COLUMNS} from inbox where body = ?`
  const rowsOf = async (body: string | Uint8Array) => (await storedRows(place, byBody, Buffer.from(body))).map(decodeRow)
  return {
    /** Returns the rows with exactly these bytes. */
    rowsOf,
    /** Returns the only row with exactly these bytes, and fails if there are none or several. */
    async rowOf(body: string | Uint8Array): Promise<InboxRow> {
      const rows = await rowsOf(body)
      return rows[0] !== undefined && rows.length === 1 ? rows[0] : fail(`${rows.length} rows hold these bytes, not one`)
    },
    count: () => storedNumber(place, 'select count(*) from inbox'),
  }
}

function decodeRow(row: unknown): InboxRow {
  if (typeof row !== 'object' || row === null) return fail('no row')
  const columns: Readonly<Record<string, unknown>> = { ...row }
  const { body, reason, content_encoding: contentEncoding, parcel_id: parcelId } = columns
  return {
    body: Buffer.isBuffer(body) ? body : fail('the body is not stored as bytes'),
    state: STATES[Number(columns.state)] ?? fail(`no state: ${String(columns.state)}`),
    reason: typeof reason === 'string' ? reason : null,
    parcelId: typeof parcelId === 'number' && parcelId > 0 ? parcelId : null,
    keyIndex: Number(columns.key_index),
    contentEncoding: typeof contentEncoding === 'string' ? contentEncoding : null,
    duplicates: Number(columns.duplicates),
  }
}
