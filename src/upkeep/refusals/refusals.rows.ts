import type { Selectable } from 'kysely'
import type { Refusal } from '../../core/domain/ingest/refused-spells.ts'
import { parseStored } from '../../core/domain/json-body.ts'
import type { Session } from '../../core/store/engine.ts'
import { rowOf, statement } from '../../core/store/statement.ts'
import { COLUMNS, type RowOf, type Tables } from '../../core/store/tables.ts'
import { type MismatchCause, readCause } from './mismatch-causes.rules.ts'
import { type KeptRefusal, REFUSALS_KEPT } from './refusals.rules.ts'

const { id: _id, ...REFUSAL } = COLUMNS.refusal
const insert = statement<RowOf<typeof REFUSAL>>()((db, p) => db.insertInto('refusal').values(rowOf(REFUSAL, p)))
const forgetOldest = statement()((db) =>
  db.deleteFrom('refusal').where('id', '<', (of) =>
    of
      .selectFrom('refusal as kept')
      .select('kept.id')
      .orderBy('kept.id', 'desc')
      .limit(1)
      .offset(REFUSALS_KEPT - 1),
  ),
)
const newest = statement<{ before: number; limit: number }>()((db, p) =>
  db.selectFrom('refusal').selectAll().where('id', '<', p.before).orderBy('id', 'desc').limit(p.limit),
)

/** Adds a refusal, and removes the oldest beyond `REFUSALS_KEPT`. */
export function addRefusal(session: Session, { atMs, address, verdict, key, causes, isCutShort, headers, body }: Refusal): void {
  session.enqueueWrite(insert, {
    at_ms: atMs,
    address,
    verdict,
    key_name: key,
    causes: JSON.stringify(causes),
    is_cut_short: isCutShort ? 1 : 0,
    headers: JSON.stringify(headers),
    body_bytes: body?.bytes ?? null,
    body_sha256: body?.sha256 ?? null,
  })
  session.enqueueWrite(forgetOldest, {})
}

/** Lists refusals with ids below `before`, the newest first. */
export async function listRefusals(
  session: Session,
  { before, limit }: { readonly before: number | null; readonly limit: number },
): Promise<readonly KeptRefusal[]> {
  const rows = await session.all(newest, { before: before ?? Number.MAX_SAFE_INTEGER, limit })
  return rows.map(decodeRefusal)
}

function decodeRefusal(row: Selectable<Tables['refusal']>): KeptRefusal {
  return {
    refusalId: row.id,
    atMs: row.at_ms,
    address: row.address,
    verdict: row.verdict === 'explained' ? 'explained' : 'unexplained',
    key: row.key_name,
    causes: decodeCauses(row.causes),
    isCutShort: row.is_cut_short !== 0,
    headers: decodeHeaders(row.headers),
    body: row.body_bytes === null || row.body_sha256 === null ? null : { bytes: row.body_bytes, sha256: row.body_sha256 },
  }
}

function decodeCauses(json: string): readonly MismatchCause[] {
  const causes = parseStored(json)
  return Array.isArray(causes) ? causes.flatMap((cause: unknown) => readCause(cause) ?? []) : []
}

function decodeHeaders(json: string): Readonly<Record<string, string>> {
  const headers = parseStored(json)
  const members = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return Object.fromEntries(members.map(([name, value]) => [name, String(value)]))
}
