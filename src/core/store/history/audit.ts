import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

const insertAudit = statement<{ sequence: number; atMs: number; kind: string; parcelId: number; detail: string }>()((db, p) =>
  db.insertInto('audit').values({ sequence: p.sequence, at_ms: p.atMs, kind: p.kind, parcel_id: p.parcelId, detail: p.detail }),
)

export interface AuditRecord {
  readonly sequence: number
  readonly atMs: number
  readonly kind: 'join'
  readonly parcelId: number
  readonly detail: object
}

/** Records a join in the audit trail, with everything that is needed to undo it. */
export function appendAudit(session: Session, record: AuditRecord): void {
  session.enqueueWrite(insertAudit, { ...record, detail: JSON.stringify(record.detail) })
}
