import { type Counts, REPORT_SPAN, sumOf } from '../../core/domain/admin/tally.ts'
import { DAY_MS, dayIn } from '../../core/domain/calendar.ts'
import { AppError } from '../../core/domain/errors.ts'
import { CARRIER_TROUBLE } from '../../core/domain/polling/carrier-answer.ts'
import { wrongInput } from '../../core/domain/read-input.ts'
import type { Reads, Writes } from '../../core/flow/relay-part.ts'
import { presentInstant } from '../../core/http/server/answer-schemas.ts'
import { startRepeating } from '../../core/runtime/schedule.ts'
import { listTallies } from '../../core/store/admin/tally-rows.ts'
import { loadNames } from '../../core/store/history/parcels.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import type { ReportAnswer } from './report.routes.ts'
import { countProofs, hasNotes, listOutages, listParcelProofs, listPushProofs, loadCountedFrom } from './report.rows.ts'
import {
  correctionsOf,
  DAYS,
  dayName,
  latenessBars,
  type Month,
  monthOf,
  namedCounts,
  type Outage,
  PROVED_BY_PARCELS,
  PROVED_BY_PUSHES,
  percentile,
  readMonth,
} from './report.rules.ts'

/** So many ids prove a count. */
const SHOWN_MAX = 50
const OUTAGES_MAX = 500
/** How often what was noted is added to the days of the report, in milliseconds. */
const FOLD_MS = 10_000

type Ports = Pick<Relay, 'clock' | 'log'> &
  Reads<'session' | 'troubleSinceMs'> &
  Writes<'foldReport'> & { readonly settings: () => ReportSettings }

interface ReportSettings {
  readonly zone: string
  readonly retention: { readonly reportsMs: number }
  readonly poll: { readonly missedPushGraceMs: number }
}

export type Reports = ReturnType<typeof createReports>

export function createReports(ports: Ports) {
  const { reads, write, clock, log, settings } = ports

  /** Adds to the report what was noted since the last call. */
  async function fold(): Promise<void> {
    const [{ zone }, nowMs] = [settings(), clock.now()]
    const countedFrom = await loadCountedFrom(reads.session)
    let isLeft = (await hasNotes(reads.session)) || countedFrom === null || countedFrom > dayIn(zone, nowMs)
    while (isLeft) isLeft = await write.foldReport({ nowMs, zone })
  }

  return {
    fold,
    /**
     * Reads the report of a month, such as 2026-10; null: of the present month. Throws `bad_request` if the month is written in another way, has not
     * begun, or was over before the relay began to count.
     */
    async read(asked: string | null): Promise<ReportAnswer> {
      await fold().catch((err: unknown) => log.debug({ err }, 'cannot add the newest counts to the report'))
      const { zone, retention, poll } = settings()
      const nowMs = clock.now()
      const today = dayIn(zone, nowMs)
      const month = asked === null ? monthOf(today) : readMonth(asked)
      if (month === null) throw wrongInput('query', 'month', `month must be a month such as ${monthOf(today).name}.`)
      const countedFrom = Math.min((await loadCountedFrom(reads.session)) ?? today, today)
      refuseMonth(month, { today, zone, countedFrom, keptFrom: dayIn(zone, nowMs - retention.reportsMs) })
      return await reportOf(ports, { month, today, zone, countedFrom, nowMs, graceMs: poll.missedPushGraceMs })
    },
  }
}

interface Bounds {
  readonly today: number
  readonly zone: string
  readonly countedFrom: number
  readonly keptFrom: number
}

function refuseMonth({ name, from, to }: Month, { today, zone, countedFrom, keptFrom }: Bounds): void {
  if (from > today) throw wrongInput('query', 'month', `month ${name} has not begun: it is ${dayName(today)} in ${zone}.`)
  if (to <= countedFrom)
    throw wrongInput('query', 'month', `month ${name} was over before this relay began to count, on ${dayName(countedFrom)}.`)
  if (to <= keptFrom)
    throw new AppError('not_found', `The report of ${name} was removed: retention.reports keeps no day before ${dayName(keptFrom)}.`)
}

async function reportOf(
  { reads }: Ports,
  {
    month,
    today,
    zone,
    countedFrom,
    nowMs,
    graceMs,
  }: Omit<Bounds, 'keptFrom'> & Pick<ReportAnswer, 'graceMs'> & { readonly month: Month; readonly nowMs: number },
): Promise<ReportAnswer> {
  const { session } = reads
  const days = await listTallies(session, { span: REPORT_SPAN, kind: DAYS, fromMs: month.from, toMs: month.to })
  const byDay = new Map(days.map(({ fromMs, counts }) => [fromMs, counts]))
  const corrections = await listTallies(session, {
    span: REPORT_SPAN,
    kind: correctionsOf(month.name),
    fromMs: 0,
    toMs: Number.MAX_SAFE_INTEGER,
  })
  const sum = sumOf(days)
  const counts = namedCounts(sum)
  // Counted days may lie ahead of a clock, or a zone, that was put back.
  const lastDay = Math.max(Math.min(month.to - DAY_MS, today), ...byDay.keys())
  const begun = Array.from({ length: (lastDay - month.from) / DAY_MS + 1 }, (_, at) => month.from + at * DAY_MS)
  const evidence: ReportAnswer['evidence'][number][] = []
  for (const name of PROVED_BY_PARCELS) evidence.push(await parcelEvidence(reads, name, month, counts[name]))
  for (const name of PROVED_BY_PUSHES) evidence.push(await pushEvidence(reads, name, month, counts[name]))
  return {
    month: month.name,
    zone,
    state: today < month.to ? 'running' : today < month.closes ? 'open' : 'closed',
    closesOn: dayName(month.closes),
    countedFrom: dayName(countedFrom),
    graceMs,
    counts,
    lateness: latenessOf(sum),
    latenessBars: latenessBars(sum),
    days: begun.map((day) => ({ day: dayName(day), counts: namedCounts(byDay.get(day) ?? {}) })),
    outages: await outagesOf(reads, { month, zone, nowMs }),
    corrections: corrections.map(({ fromMs, counts: changes }) => ({ foundOn: dayName(fromMs), changes: changesOf(changes) })),
    evidence,
  }
}

function latenessOf(counts: Counts): ReportAnswer['lateness'] {
  const of = (share: number) => percentile(counts, share)
  const [p50Ms, p95Ms, p99Ms] = [of(0.5), of(0.95), of(0.99)]
  return p50Ms === null || p95Ms === null || p99Ms === null ? null : { p50Ms, p95Ms, p99Ms }
}

/** Leaves out the histograms, and what has changed and changed back. */
function changesOf(changes: Counts): Counts {
  return Object.fromEntries(Object.entries(changes).filter(([name, count]) => count !== 0 && !/^b\d+$/.test(name)))
}

async function outagesOf(
  reads: Ports['reads'],
  { month, zone, nowMs }: { readonly month: Month; readonly zone: string; readonly nowMs: number },
): Promise<ReportAnswer['outages']> {
  const sinceMs = await reads.troubleSinceMs(CARRIER_TROUBLE)
  const lasting = sinceMs === null ? [] : [{ fromMs: sinceMs, untilMs: null }]
  // A day in UTC later than the month ends in any time zone.
  const ended = await listOutages(reads.session, month.to + DAY_MS, OUTAGES_MAX)
  const isOfMonth = ({ fromMs, untilMs }: Outage) => dayIn(zone, fromMs) < month.to && dayIn(zone, untilMs ?? nowMs) >= month.from
  return [...ended.toReversed(), ...lasting]
    .filter(isOfMonth)
    .map(({ fromMs, untilMs }) => ({ from: presentInstant(fromMs), until: presentInstant(untilMs) }))
}

async function parcelEvidence({ session }: Ports['reads'], name: (typeof PROVED_BY_PARCELS)[number], { from, to }: Month, counted: number) {
  const stored = await countProofs(session, { name, from, to })
  const shown = await listParcelProofs(session, { name, from, to, limit: SHOWN_MAX })
  const names = await loadNames(session, [...new Set(shown.map((row) => row.parcel_id))])
  // The tracking number comes first.
  const ids = [...new Set(shown.flatMap((row) => names.get(row.parcel_id)?.[0] ?? []))]
  return { name, of: 'parcels' as const, ids, more: Math.max(0, stored - shown.length), removed: Math.max(0, counted - stored), unkept: 0 }
}

async function pushEvidence({ session }: Ports['reads'], name: (typeof PROVED_BY_PUSHES)[number], { from, to }: Month, counted: number) {
  const proofs = await listPushProofs(session, { name, from, to })
  const living = proofs.filter(({ isGone }) => !isGone)
  const ids = living.slice(0, SHOWN_MAX).map(({ id }) => String(id))
  return {
    name,
    of: 'inbox' as const,
    ids,
    more: living.length - ids.length,
    removed: proofs.length - living.length,
    unkept: Math.max(0, counted - proofs.length),
  }
}

type OpenPorts = Ports & Pick<Relay, 'replicas' | 'closing'>

/** Opens the carrier's report, and begins to add to it what is noted. */
export function openReports(ports: OpenPorts): Reports {
  const reports = createReports(ports)
  const { replicas, closing, log } = ports
  const folding = startRepeating(async () => {
    if (!replicas.holds('janitor')) return
    await reports.fold().catch((err: unknown) => log.debug({ err }, 'cannot add to the carrier’s report now; the relay tries again'))
  }, FOLD_MS)
  closing.add(() => folding.stop())
  return reports
}
