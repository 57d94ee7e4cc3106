import { type Counts, seriesOf, spanStart, type Tally, type TallyKind, type TallySpan } from '../../core/domain/admin/tally.ts'
import type { Part, Reads } from '../../core/flow/relay.ts'

/** Counts for each hour or day, the oldest first. The last hour or day is not over yet. */
export interface TrafficSeries {
  /** The beginning of each hour or day. */
  readonly fromMs: readonly number[]
  readonly pushes: readonly Counts[]
  readonly missed: readonly Counts[]
  readonly polls: readonly Counts[]
  readonly attempts: readonly Counts[]
}

export interface Traffic {
  readonly hours: TrafficSeries
  readonly days: TrafficSeries
  /** Today's calls to the carrier, by spender. */
  readonly calls: Counts
  /** The lowest number of free bytes on the store's disk in each hour, as the count `free`. */
  readonly disk: readonly Tally[]
}

const SHOWN: Readonly<Record<TallySpan, number>> = { hour: 24, day: 30 }

export type TrafficPorts = Part<'clock', 'now'> & Reads<'listTallies'>

/** Reads the traffic of the last 24 hours and 30 days: some 250 short rows. */
export function createReadTraffic(ports: TrafficPorts): () => Promise<Traffic> {
  const read = createReadSeries(ports)
  const traffic = async (span: TallySpan): Promise<TrafficSeries> => {
    const [pushes, missed, polls, attempts] = await Promise.all([
      read('pushes', span),
      read('missed', span),
      read('polls', span),
      read('attempts', span),
    ])
    const counts = (series: typeof pushes) => series.map((one) => one.counts)
    return {
      fromMs: pushes.map(({ fromMs }) => fromMs),
      pushes: counts(pushes),
      missed: counts(missed),
      polls: counts(polls),
      attempts: counts(attempts),
    }
  }
  return async () => {
    const [hours, days, calls, disk] = await Promise.all([traffic('hour'), traffic('day'), read('calls', 'day'), read('disk', 'hour')])
    return { hours, days, calls: calls.at(-1)?.counts ?? {}, disk }
  }
}

/** Reads the shown hours or days of one kind, with zeros where there are no counts. */
function createReadSeries({ reads, clock }: TrafficPorts) {
  return async (kind: TallyKind, span: TallySpan) => {
    const toMs = clock.now() + 1
    const last = spanStart(span, clock.now())
    const stored = await reads.listTallies({ span, kind, fromMs: seriesOf([], { span, last, length: SHOWN[span] })[0]?.fromMs ?? 0, toMs })
    return seriesOf(stored, { span, last, length: SHOWN[span] })
  }
}
