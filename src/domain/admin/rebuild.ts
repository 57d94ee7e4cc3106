import { z } from 'zod'
import { digest } from '../digest.ts'
import type { HistoryChange, HistoryChangeKind } from '../history/rebuild/compare-histories.ts'
import type { RebuiltParcel } from '../history/rebuild/rebuild-parcel.ts'

/** The maximum of parcels that one order may name. */
const NAMED_MAX = 100

/** The body of an order to rebuild. */
export const rebuildOrderSchema = z.strictObject({
  identifiers: z
    .array(z.string())
    .min(1)
    .max(NAMED_MAX)
    .optional()
    .describe('Only the parcels with these identifiers; absent: all parcels.'),
})

/** A change of a history in a report: its position and what differs. It never contains the words of the parcel, which may be erased. */
export interface RebuildExample extends Pick<HistoryChange, 'kind' | 'members'> {
  readonly parcelId: number
  /** An identifier of the parcel. It is looked up for the reader and not stored here. Null: the parcel is gone. */
  readonly identifier?: string | null
  /** The id of the entry; null: it has none yet, or the change concerns the parcel as a whole. */
  readonly entry: number | null
}

/** The findings of a rebuild. */
export interface RebuildReport {
  /** How many parcels were compared. */
  readonly parcels: number
  /** How many parcels have lost bytes, so that they were derived from their sightings. */
  readonly fromSightings: number
  /** How many parcels have bytes that do not match their digest. They were derived from their sightings too. */
  readonly damaged: number
  /** How many could not be compared, because of a fault in the relay or because they kept changing. They stay as they are. */
  readonly left: number
  /** How many parcels name an identifier that another parcel has. The identifier stays with that other parcel. */
  readonly conflicts: number
  /** For how many parcels anything stored differs from what was derived. */
  readonly differing: number
  /** For how many parcels the served history differs. */
  readonly histories: number
  /** The changes of histories, by kind. */
  readonly changes: Readonly<Partial<Record<HistoryChangeKind, number>>>
  /** The first change of each kind. */
  readonly examples: readonly RebuildExample[]
  /** Digests of all parcels in order, as stored and as derived. If they are equal, nothing differs. */
  readonly stored: string
  readonly derived: string
}

/** Where a rebuild continues, and its results so far. */
export interface RebuildProgress {
  /** The last parcel that was compared. */
  readonly rebuiltTo: number
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

/** Adds the result for a parcel. */
export function addRebuilt({ report }: RebuildProgress, parcel: RebuiltParcel): RebuildProgress {
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
export function addLeft({ report }: RebuildProgress, parcelId: number): RebuildProgress {
  return { rebuiltTo: parcelId, report: { ...report, parcels: report.parcels + 1, left: report.left + 1 } }
}
