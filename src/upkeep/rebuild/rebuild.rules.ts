import { z } from 'zod'
import type { Job } from '../../core/domain/admin/job.ts'
import { digest } from '../../core/domain/text.ts'
import type { HistoryChange, HistoryChangeKind } from './compare-histories.rules.ts'
import type { RebuiltParcel } from './rebuild-parcel.rules.ts'

declare module '../../core/domain/admin/job.ts' {
  interface JobTasks {
    readonly rebuild: RebuildJobTask
  }
  interface JobCursors {
    readonly rebuild: RebuildProgress
  }
}

/** Derives the stored data of parcels again, and corrects what differs. `dryRun`: only compares. */
export interface RebuildJobTask {
  readonly kind: 'rebuild'
  readonly dryRun: boolean
  /** The ids of the parcels, ascending; null: all. */
  readonly parcels: readonly number[] | null
  /** How many parcels there were at the time of the order. */
  readonly total: number
}

/** Returns the results of a rebuild so far; null: the job is of another kind, or has not begun. */
export function rebuiltBy({ cursor }: Pick<Job, 'cursor'>): RebuildReport | null {
  return cursor !== null && 'rebuiltTo' in cursor ? cursor.report : null
}

const NAMED_MAX = 100

export const rebuildOrderSchema = z.strictObject({
  identifiers: z
    .array(z.string())
    .min(1)
    .max(NAMED_MAX)
    .optional()
    .describe('Only the parcels with these identifiers; absent: all parcels.'),
})

/** A change of a history in a report: where it is and what differs. It contains no texts of the parcel, because the parcel may be erased later. */
export interface RebuildExample extends Pick<HistoryChange, 'kind' | 'members'> {
  readonly parcelId: number
  /** An identifier of the parcel. It is not stored with the report, but looked up when somebody reads it. Null: the parcel no longer exists. */
  readonly identifier?: string | null
  /** The id of the entry; null: the entry has no id yet, or the change concerns the whole parcel. */
  readonly entry: number | null
}

export interface RebuildReport {
  /** How many parcels were handled so far, including those that could not be compared (`left`). */
  readonly parcels: number
  /** How many parcels were derived from their sightings, because some bytes of their pushes or answers are gone. */
  readonly fromSightings: number
  /** How many parcels have bytes that do not match their digest. They were also derived from their sightings. */
  readonly damaged: number
  /** How many parcels could not be compared, because of an error or because they kept changing. They stay as they are. */
  readonly left: number
  /** How many parcels name an identifier that another parcel has. The identifier stays with that other parcel. */
  readonly conflicts: number
  /** The number of parcels for which any stored data differs from the derived data. */
  readonly differing: number
  /** The number of parcels for which the history that is served to apps differs. */
  readonly histories: number
  readonly changes: Readonly<Partial<Record<HistoryChangeKind, number>>>
  /** The first change of each kind. */
  readonly examples: readonly RebuildExample[]
  /** A digest of the stored data of all parcels. If it equals the digest of the derived data (`derived`), nothing differs. */
  readonly stored: string
  readonly derived: string
}

export interface RebuildProgress {
  /** The id of the last parcel that was handled. */
  readonly rebuiltTo: number
  /** The id of the newest parcel when the rebuild began. Later parcels need no rebuild. Absent: it has not begun. */
  readonly until?: number
  readonly report: RebuildReport
}

export const REBUILD_START: RebuildProgress = {
  rebuiltTo: 0,
  report: {
    parcels: 0,
    fromSightings: 0,
    damaged: 0,
    left: 0,
    conflicts: 0,
    differing: 0,
    histories: 0,
    changes: {},
    examples: [],
    stored: '',
    derived: '',
  },
}

export function addRebuilt({ report, ...progress }: RebuildProgress, parcel: RebuiltParcel): RebuildProgress {
  const changes = { ...report.changes }
  for (const { kind } of parcel.changes) changes[kind] = (changes[kind] ?? 0) + 1
  const isUnknown = ({ kind }: HistoryChange) => report.examples.every((example) => example.kind !== kind)
  const byKind = Map.groupBy(parcel.changes.filter(isUnknown), ({ kind }) => kind)
  const examples = [...byKind.values()]
    .flatMap((found) => found.slice(0, 1))
    .map(({ kind, entry, members }) => ({
      kind,
      members,
      parcelId: parcel.parcelId,
      // A new entry gets its id when it is stored.
      entry: kind === 'entry' ? null : (entry?.sequence ?? null),
    }))
  return {
    ...progress,
    rebuiltTo: parcel.parcelId,
    report: {
      ...report,
      parcels: report.parcels + 1,
      fromSightings: report.fromSightings + (parcel.source === 'sightings' ? 1 : 0),
      damaged: report.damaged + (parcel.isDamaged ? 1 : 0),
      conflicts: report.conflicts + (parcel.conflicts.length > 0 ? 1 : 0),
      differing: report.differing + (parcel.stored === parcel.derived ? 0 : 1),
      histories: report.histories + (parcel.changes.length > 0 ? 1 : 0),
      changes,
      examples: examples.length === 0 ? report.examples : [...report.examples, ...examples],
      stored: digest(report.stored + parcel.stored),
      derived: digest(report.derived + parcel.derived),
    },
  }
}

/** Counts a parcel that could not be compared. */
export function addLeft({ report, ...progress }: RebuildProgress, parcelId: number): RebuildProgress {
  return { ...progress, rebuiltTo: parcelId, report: { ...report, parcels: report.parcels + 1, left: report.left + 1 } }
}
