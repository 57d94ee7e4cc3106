import { z } from 'zod'
import { bytesText, counted, countText, spanText } from '../../core/domain/amounts.ts'
import type { Undelivered } from '../../core/domain/delivery/dispatch-round.ts'
import { parseStored } from '../../core/domain/json-body.ts'
import type { RefusedPushes } from '../refused/refused-pushes.rules.ts'
import { CORE_CONCERNS, type Concern, type ConcernKind, inOrder } from './concern-kinds.ts'
import { EXPIRING_MS, type OwnCertificate } from './trouble.ts'

/** Deliveries of an endpoint that neither fails nor is disabled. `oldestAtMs`: when the oldest waiting one was queued; null: none waits. */
export interface WorkingBacklog {
  readonly endpoint: string
  readonly oldestAtMs: number | null
}

/** What the concerns are decided from. Times are epoch milliseconds. */
export interface ConcernFacts {
  /** When this relay started. */
  readonly startedAtMs: number
  readonly certificates: readonly OwnCertificate[]
  /** Why the last reload failed, or what of it could not be used; null: nothing. */
  readonly failedReload: { readonly atMs: number; readonly problems: readonly string[] } | null
  readonly refused: readonly RefusedPushes[]
  readonly lastPushAtMs: number | null
  readonly replicas: readonly { readonly roles: readonly string[]; readonly startedAtMs: number; readonly lastSeenAtMs: number }[]
  /** The carrier's clock minus ours; null: not known, or the clock is doubted already. */
  readonly carrierAheadMs: number | null
  /** When the most overdue poll was due; null: none is. */
  readonly pollDueAtMs: number | null
  /** Since when polls are made: not before the start, within quiet hours, or while they cannot be made for another reason that is told. */
  readonly pollsMadeFromMs: number
  /** How many calls the carrier may get today, if all are made. Polls are then put off to the next day, so none is overdue. Null: some are left. */
  readonly callsSpent: number | null
  readonly backlogs: readonly WorkingBacklog[]
  /** Null: the store takes what was sent. */
  readonly undelivered: Undelivered | null
  readonly wal: { readonly bytes: number; readonly bytesWarn: number }
  /** What wings have found. */
  readonly offered: readonly Found[]
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** Another replica takes a role over within seconds, and a relay that starts takes its roles. */
const TAKEN_WITHIN_MS = 10_000
/** So much later than due, or than polls are made again, a poll is late. */
export const POLL_LATE_MS = HOUR_MS
const WAITS_LONG_MS = 15 * MINUTE_MS
/** A lock of another program, or a restart of the database, may last some seconds. */
const UNWRITTEN_MS = 5000
/** With this many refused pushes and none accepted, it is hardly a stranger who sends them. */
const REFUSED_MANY = 20
const UNACCEPTED_MS = 30 * MINUTE_MS

/** A concern as it is found; without an endpoint it is about none. */
export type Found = Omit<Concern, 'endpoint' | 'replica'> & Partial<Pick<Concern, 'endpoint'>>

/** What a line of `check` says of one thing. */
export interface Verdict {
  /** `warning`: the thing works, but somebody should look at it. `failed`: it does not work. `skipped`: it could not be checked. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped'
  /** Says what was found and, if something is wrong, what to do. Never contains a secret. */
  readonly message: string
}

/** What was seen already when wings are asked what is wrong. */
export interface SeenBefore {
  readonly nowMs: number
  /** When this relay started. */
  readonly startedAtMs: number
  readonly isClockDoubted: boolean
  readonly isBackupFailing: boolean
}

/** Finds what is wrong in a folder of a wing. */
export type FindConcerns = (seen: SeenBefore) => Promise<readonly Found[]>

/** Makes a costly look, such as one at files, serve for some seconds, however often it is asked for. A failure does not serve. */
export type KeepLook = <Args extends readonly unknown[], Result>(
  look: (...args: Args) => Promise<Result>,
) => (...args: Args) => Promise<Result>

/** Finds the concerns. */
export function concernsOf(facts: ConcernFacts, nowMs: number): readonly Concern[] {
  const found: readonly Found[] = [
    ...facts.certificates.flatMap((one) => ofCertificate(one, nowMs)),
    ...ofRefused(facts, nowMs),
    ...ofRoles(facts, nowMs),
    ...ofClock(facts),
    ...ofUndelivered(facts, nowMs),
    ...ofReload(facts),
    ...ofPolls(facts, nowMs),
    ...facts.backlogs.flatMap((one) => ofBacklog(one, nowMs)),
    ...ofWal(facts),
    ...facts.offered,
  ]
  return found.map(concernOf)
}

function concernOf(found: Found): Concern {
  return { endpoint: null, replica: null, ...found }
}

/** A replica tells the others at most this many concerns, each with so many lines of evidence of so many characters. */
const TOLD = { concerns: 20, lines: 5, characters: 300 }

/** Finds what only this replica can know. It tells the other replicas with its lease. */
export function localConcerns(
  facts: Pick<ConcernFacts, 'certificates' | 'failedReload' | 'carrierAheadMs'>,
  nowMs: number,
): readonly Concern[] {
  const found = [...facts.certificates.flatMap((one) => ofCertificate(one, nowMs)), ...ofReload(facts), ...ofClock(facts)]
  return bounded(inOrder(found.map(concernOf), Object.keys(CORE_CONCERNS)))
}

/** Shortens what a replica tells, also when it is heard: whoever can write to the database could have told anything. */
function bounded(concerns: readonly Concern[]): readonly Concern[] {
  const short = (line: string) => (line.length > TOLD.characters ? `${line.slice(0, TOLD.characters)}…` : line)
  const few = (lines: readonly string[]) => lines.slice(0, TOLD.lines).map(short)
  return concerns
    .slice(0, TOLD.concerns)
    .map((one) => ({ ...one, title: short(one.title), evidence: few(one.evidence), todo: few(one.todo) }))
}

/** Adds to what the replica `me` has found what the others have told, and says whose each concern is. All replicas share one clock. */
export function concernsOfAll(
  mine: readonly Concern[],
  replicas: readonly { readonly id: number; readonly name: string; readonly concerns: readonly Concern[] }[],
  me: number,
): readonly Concern[] {
  const others = replicas.filter(({ id }) => id !== me)
  if (others.length === 0) return mine
  const myName = replicas.find(({ id }) => id === me)?.name ?? null
  const named = mine.map((one) => (LOCAL.includes(one.kind) ? atReplica(one, myName) : one))
  const told = others.flatMap(({ name, concerns }) => concerns.map((one) => (LOCAL.includes(one.kind) ? atReplica(one, name) : one)))
  const shared = told.find(({ kind }) => !LOCAL.includes(kind) && !mine.some((one) => one.kind === kind))
  return [...named, ...told.filter(({ kind }) => LOCAL.includes(kind)), ...(shared === undefined ? [] : [shared])]
}

const LOCAL: readonly ConcernKind[] = ['certificate_expired', 'certificate_expiring', 'reload_failed']

function atReplica(concern: Concern, replica: string | null): Concern {
  return replica === null ? concern : { ...concern, replica, title: `${concern.title} (replica ${replica})` }
}

function ofCertificate({ shownBy, endpoint, untilMs }: OwnCertificate, nowMs: number): readonly Found[] {
  if (untilMs - nowMs >= EXPIRING_MS) return []
  const hasExpired = untilMs <= nowMs
  const who = endpoint === null ? 'The carrier, or applications, refuse' : 'The endpoint refuses'
  const until = new Date(untilMs).toISOString()
  return [
    {
      kind: hasExpired ? 'certificate_expired' : 'certificate_expiring',
      endpoint,
      title: `The certificate of the ${shownBy} ${hasExpired ? 'has expired' : `expires in ${spanText(untilMs - nowMs)}`}`,
      sinceMs: hasExpired ? untilMs : null,
      evidence: [hasExpired ? `${who} to connect.` : `It is valid until ${until}. ${who} to connect from then on.`],
      todo: [
        `Renew it, write ${endpoint === null ? 'the files of listen.*.tls' : 'the files of its clientCert'}, then reload: parcel-relay reload.`,
      ],
    },
  ]
}

/** Makes a concern of what was judged as `check` judges it, if that is a failure. */
export function concernOfVerdict(kind: ConcernKind, title: string, { state, message }: Verdict): readonly Found[] {
  if (state !== 'failed') return []
  return [{ kind, title, sinceMs: null, evidence: [message], todo: ['When it is mended, see whether all is well: parcel-relay check.'] }]
}

/** Any stranger can send pushes that are refused. But if many are, and none is accepted, the carrier is probably refused. */
function ofRefused({ refused, lastPushAtMs }: ConcernFacts, nowMs: number): readonly Found[] {
  const spells = refused.filter(
    ({ cause, untilMs }) => (cause === 'signature' || cause === 'path' || cause === 'size') && nowMs - untilMs < UNACCEPTED_MS,
  )
  const count = spells.reduce((sum, spell) => sum + spell.count, 0)
  const fromMs = Math.min(...spells.map((spell) => spell.fromMs))
  if (count <= REFUSED_MANY || (lastPushAtMs !== null && lastPushAtMs >= Math.max(fromMs, nowMs - UNACCEPTED_MS))) return []
  return [
    {
      kind: 'pushes_unaccepted',
      title: 'Every push is refused',
      sinceMs: fromMs,
      evidence: [
        `${countText(count)} pushes were refused since then, and in the last ${spanText(UNACCEPTED_MS)} none with news was accepted.`,
      ],
      todo: [
        "The carrier's key, its address or the size of its pushes has probably changed. See which: parcel-relay inbox --refused.",
        'Mend that, and ask the carrier to send again what was refused.',
      ],
    },
  ]
}

function ofRoles({ replicas, ...facts }: ConcernFacts, nowMs: number): readonly Found[] {
  const isStarting = nowMs - Math.max(facts.startedAtMs, ...replicas.map(({ startedAtMs }) => startedAtMs)) < TAKEN_WITHIN_MS
  // A dead replica keeps its roles in the table until another can take them.
  const alive = replicas.filter(({ lastSeenAtMs }) => nowMs - lastSeenAtMs < TAKEN_WITHIN_MS)
  const missing = (['poller', 'janitor'] as const).filter((role) => !alive.some(({ roles }) => roles.includes(role)))
  if (isStarting || replicas.length === 0) return []
  return missing.map((role) => ({
    kind: 'role_missing',
    title: `No replica is the ${role}`,
    sinceMs: null,
    evidence: [role === 'poller' ? 'Nothing is polled.' : 'Nothing old is removed, and no job is worked on.'],
    todo: [
      'Another replica takes a role over within seconds. If it lasts, restart the replica that was seen longest ago: GET /relay/replicas. Or does another program hold a transaction on the database (pg_stat_activity)?',
    ],
  }))
}

/** A clock that is wrong by so much is wrong for sure. */
export const CLOCK_OFF_MS = MINUTE_MS

/** @param aheadMs the carrier's clock minus the relay's */
export function describeClock(aheadMs: number): string {
  const seconds = Math.round(Math.abs(aheadMs) / 1000)
  return `It is ${seconds} s ${aheadMs > 0 ? 'behind' : 'ahead of'} the carrier's. Have the machine set its clock by NTP.`
}

function ofClock({ carrierAheadMs }: Pick<ConcernFacts, 'carrierAheadMs'>): readonly Found[] {
  if (carrierAheadMs === null || Math.abs(carrierAheadMs) < CLOCK_OFF_MS) return []
  return [
    {
      kind: 'clock_off',
      title: 'The clock is wrong',
      sinceMs: null,
      evidence: [describeClock(carrierAheadMs)],
      todo: ['Then look again: parcel-relay check.'],
    },
  ]
}

function ofUndelivered({ undelivered }: ConcernFacts, nowMs: number): readonly Found[] {
  if (undelivered === null || nowMs - undelivered.sinceMs < UNWRITTEN_MS) return []
  const { sinceMs, results } = undelivered
  return [
    {
      kind: 'deliveries_unwritten',
      title: 'Events to webhooks wait: the store cannot be written',
      sinceMs,
      evidence: [
        results === 0
          ? 'The next events cannot be taken from the store. None is lost.'
          : `${counted(results, 'attempt has', 'attempts have')} ended, and the results cannot be written down, so nothing more is sent. None is lost; what was sent may be sent again, under the same id.`,
      ],
      todo: ['Mend the store: another problem, the log or /readyz says what it lacks. Then they go on by themselves.'],
    },
  ]
}

function ofReload({ failedReload }: Pick<ConcernFacts, 'failedReload'>): readonly Found[] {
  if (failedReload === null) return []
  return [
    {
      kind: 'reload_failed',
      title: 'The last reload could not use everything',
      sinceMs: failedReload.atMs,
      evidence: [...failedReload.problems.map((problem) => `${problem}.`.replace(/\.\.$/, '.')), 'What was in use before stays in use.'],
      todo: ['Correct that, then reload again: parcel-relay reload. A restart with this config may fail.'],
    },
  ]
}

function ofPolls({ pollDueAtMs, pollsMadeFromMs, callsSpent }: ConcernFacts, nowMs: number): readonly Found[] {
  if (callsSpent !== null)
    return [
      {
        kind: 'polls_behind',
        title: "Today's calls to the carrier are used up",
        sinceMs: null,
        evidence: [
          `All ${countText(callsSpent)} calls that upstream.callsPerDay allows in a day of UTC were made. Until the next one nothing is polled, and a parcel that the relay does not know gets 503.`,
        ],
        todo: [
          'See who made them: GET /relay/tallies?kind=calls. Raise upstream.callsPerDay if the contract has room, or poll less often with poll.cadence.',
        ],
      },
    ]
  // After a stop, or a night without polls, all are overdue, and the relay is making them up.
  if (pollDueAtMs === null || nowMs - Math.max(pollDueAtMs, pollsMadeFromMs) < POLL_LATE_MS) return []
  return [
    {
      kind: 'polls_behind',
      title: 'Polls fall behind',
      sinceMs: null,
      evidence: [`The most overdue poll has been due for ${spanText(nowMs - pollDueAtMs)}.`],
      todo: [
        'The budget is too small for the cadence, or the carrier is slow: compare the calls of today with upstream.callsPerDay and ratePerSecond.',
      ],
    },
  ]
}

function ofBacklog({ endpoint, oldestAtMs }: WorkingBacklog, nowMs: number): readonly Found[] {
  if (oldestAtMs === null || nowMs - oldestAtMs < WAITS_LONG_MS) return []
  return [
    {
      kind: 'endpoint_behind',
      endpoint,
      title: `${endpoint} falls behind`,
      sinceMs: oldestAtMs,
      evidence: [`It takes events, and the oldest has waited for ${spanText(nowMs - oldestAtMs)}. None is lost.`],
      todo: ['Ask the people who run it whether it is slow, or limits us. Is its rate too low, or delivery.perEndpoint?'],
    },
  ]
}

function ofWal({ wal }: ConcernFacts): readonly Found[] {
  if (wal.bytes <= wal.bytesWarn) return []
  return [
    {
      kind: 'wal_grows',
      title: `The write-ahead log has ${bytesText(wal.bytes)}`,
      sinceMs: null,
      evidence: ['Another program holds a long read transaction on the store, so the disk fills.'],
      todo: ['Close the program that has the file of the store open (lsof, fuser). Copies are made with parcel-relay backup.'],
    },
  ]
}

declare module '../../core/domain/admin/replica.ts' {
  interface Replica {
    /** What is wrong at this replica and only it can know. Empty if its lease is over. */
    readonly concerns: readonly Concern[]
  }
}

const concern = z.object({
  kind: z.custom<keyof typeof CORE_CONCERNS>((kind) => typeof kind === 'string' && Object.hasOwn(CORE_CONCERNS, kind)),
  endpoint: z.string().nullable(),
  replica: z.null(),
  title: z.string(),
  sinceMs: z.number().nullable(),
  evidence: z.array(z.string()),
  todo: z.array(z.string()),
})

/** Decodes what a replica has told. Leaves out what it does not know, because another version may have told it. */
export function decodeConcerns(json: string | null): readonly Concern[] {
  const told = json === null ? [] : parseStored(json)
  return bounded(Array.isArray(told) ? told.flatMap((one) => concern.safeParse(one).data ?? []) : [])
}
