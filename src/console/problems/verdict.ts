import type { ClockDoubt } from '../../core/domain/admin/clock-record.ts'
import { DISK_FULL, type DiskRoom, isDiskFull, isDiskLow } from '../../core/domain/admin/disk-room.ts'
import type { StoreCounts } from '../../core/domain/admin/parcel-list.ts'
import type { Replica } from '../../core/domain/admin/replica.ts'
import { counted, countText, spanText } from '../../core/domain/amounts.ts'
import type { FailureGroup } from '../../core/domain/delivery/dispatch-round.ts'
import { type EndpointBacklog, type EndpointState, typedName } from '../../core/domain/delivery/endpoint-state.ts'
import type { HeldGroup } from '../../core/domain/ingest/inbox.ts'
import type { MisdirectedPath } from '../../core/domain/ingest/refused-spells.ts'
import { type CarrierStanding, type CarrierState, carrierStanding } from '../../core/domain/polling/carrier-answer.ts'
import type { PushChannelView } from '../../core/domain/polling/poll.ts'
import { LOSSY_ABOVE, type PastSilence, TRIAL_PUSHES } from '../../core/domain/polling/push-health.ts'
import { hasAllComeAgain, type RefusedPushes } from '../refused/refused-pushes.rules.ts'
import type { ConcernKind, DescribedConcern } from './concern-kinds.ts'
import { agoWord, timeWord, type Word } from './words.ts'

/**
 * The state of the push channel, as operators see it. `none`: no push with news has come yet. `too_early`: too few pushes have come, or all
 * in too short a time, to know whether pushes are lost. `resumed`: after many losses or a silence, few pushes are lost, but they must still
 * prove reliable. `not_understood`: too many of the newest pushes went into quarantine.
 */
export type PushStanding = 'none' | 'too_early' | 'healthy' | 'resumed' | 'lossy' | 'not_understood' | 'silent'

export function pushStanding({ health, lastPushAtMs, probation, newest }: PushChannelView): PushStanding {
  if (health === 'silent') return 'silent'
  if (newest.areTooMany) return 'not_understood'
  if (lastPushAtMs === null) return 'none'
  if (health === 'lossy') return probation === null ? 'lossy' : 'resumed'
  return health === 'healthy' ? 'healthy' : 'too_early'
}

/** `arePolled` false: no poll is answered, so no loss can be noticed. */
export function pushEvidence(view: PushChannelView, nowMs: number, arePolled: boolean): readonly Word[] {
  const { loss, missedSincePush, newest } = view
  const last = lastPushWords(view, nowMs)
  const sinceMs = noPushSinceMs(view)
  const misread = newest.misread === 0 ? [] : [' ', ...misreadWords(view, nowMs)]
  switch (pushStanding(view)) {
    case 'none':
      return [...last, ...misread]
    case 'too_early':
      return [...last, ' ', ...trialWords(view, nowMs), ...misread]
    case 'healthy':
      return [...last, ...fewLostWords(view, arePolled), ...misread]
    case 'resumed':
      return [...(arePolled ? resumedWords(view, nowMs) : UNNOTICED), ...misread]
    case 'lossy':
      return [...last, ` By estimate, ${percentText(loss)} ${arePolled ? 'are' : 'were'} lost.`, ...misread]
    case 'not_understood':
      return misreadWords(view, nowMs)
    case 'silent':
      return [
        sinceMs === null ? 'No push has come' : `No push has come for ${spanText(Math.max(0, nowMs - sinceMs))}`,
        `; ${countText(missedSincePush)} entries were found by polls alone.`,
      ]
  }
}

/** Returns when the last push with news came, or the last restore if none has come since, epoch milliseconds; null: none ever came. */
export function noPushSinceMs({ lastPushAtMs, restoredAtMs }: Pick<PushChannelView, 'lastPushAtMs' | 'restoredAtMs'>): number | null {
  return restoredAtMs ?? lastPushAtMs
}

/** Says when the last push with news came. After a restore this is not known until another push comes. */
export function lastPushWords({ lastPushAtMs, restoredAtMs }: PushChannelView, nowMs: number): readonly Word[] {
  if (restoredAtMs === null)
    return lastPushAtMs === null
      ? ['No push with news has come yet.']
      : ['The last push with news came ', agoWord(lastPushAtMs, nowMs), '.']
  const ofBackup: readonly Word[] =
    lastPushAtMs === null ? ['the backup holds none.'] : ['the last one in the backup came ', agoWord(lastPushAtMs, nowMs), '.']
  return ['No push with news has come since the restore ', agoWord(restoredAtMs, nowMs), '; ', ...ofBackup]
}

/** Says what share of pushes is lost although the channel is healthy; empty if no loss was noticed, or if the share is below 1 %. */
function fewLostWords({ loss, missed: { lastFoundAtMs } }: PushChannelView, arePolled: boolean): readonly Word[] {
  if (!arePolled) return [' Whether any are lost now is not known while no poll is answered.']
  if (lastFoundAtMs === null || loss < 0.01) return []
  return [
    ` By estimate, ${percentText(loss)} are lost, and polls find their entries; above ${percentText(LOSSY_ABOVE)} pushes count as lossy.`,
  ]
}

/** Without polls the estimate falls with every push, whatever is lost. */
const UNNOTICED = [
  'By estimate, too many pushes were lost or not understood. Whether they still are is not known while no poll is answered.',
]

function percentText(share: number): string {
  return `${Math.round(share * 100)} %`
}

function resumedWords(view: PushChannelView, nowMs: number): readonly Word[] {
  const { lastSilence, probation } = view
  const sinceMs = probation?.sinceMs ?? 0
  const before =
    lastSilence?.toMs === sinceMs
      ? ['No push came from ', timeWord(lastSilence.fromMs), ' until ', timeWord(sinceMs), '. ']
      : fallenWords(view, sinceMs)
  return [...before, ...trialWords(view, nowMs)]
}

/** Says when the estimated loss became low again. The estimate falls only as pushes come, so this is not the time when the losses ended. */
function fallenWords({ missed: { lastFoundAtMs } }: PushChannelView, sinceMs: number): readonly Word[] {
  return [
    'By estimate, too many pushes were lost or not understood. The estimate fell at ',
    timeWord(sinceMs),
    '; the cause may have ended long before. ',
    ...(lastFoundAtMs === null ? [] : ['The last lost push was counted at ', timeWord(lastFoundAtMs), '. ']),
  ]
}

function misreadWords({ newest: { count, misread, misreadAtMs } }: PushChannelView, nowMs: number): readonly Word[] {
  const last: readonly Word[] = misreadAtMs === null ? [] : [', the last one ', agoWord(misreadAtMs, nowMs)]
  return [`Of the newest ${counted(count, 'push', 'pushes')}, ${countText(misread)} went into quarantine`, ...last, '.']
}

/** Says why pushes are not trusted yet, and until when they have to prove reliable. */
function trialWords({ health, probation }: PushChannelView, nowMs: number): readonly Word[] {
  if (probation === null) return ['It is too early to tell whether pushes are lost.']
  const { sinceMs, untilMs, pushes } = probation
  if (untilMs === null)
    return ['It is too early to tell whether pushes are lost: no poll has brought a history since ', timeWord(sinceMs), '.']
  if (untilMs <= nowMs && pushes >= TRIAL_PUSHES)
    return ['Enough have come to tell whether any are lost: the relay is about to judge them.']
  if (untilMs <= nowMs)
    return [`Too few have come to tell whether any are lost: ${pushes} since `, timeWord(sinceMs), `, and ${TRIAL_PUSHES} are needed.`]
  return health === 'lossy'
    ? ['The relay watches them until ', timeWord(untilMs), ', and then trusts them if few are lost.']
    : ['It is too early to tell whether pushes are lost until ', timeWord(untilMs), '.']
}

/** The facts from which `problemsOf` finds what is wrong with the relay. They are cheap to read. */
export interface Glance {
  /** The reasons why the relay cannot take pushes or answer; empty: it can. */
  readonly notReady: readonly string[]
  readonly counts: Pick<StoreCounts, 'quarantined'>
  /** The space on the store's disk; null: the store is on a database server, or the space could not be measured. */
  readonly disk: DiskRoom | null
  readonly carrier: CarrierState
  readonly pushes: PushChannelView
  /** The last period without pushes, if it ended less than a day ago; null: there is none. */
  readonly pastSilence: PastSilence | null
  /** Pushes that were refused in the last day, the newest first. */
  readonly refused: readonly RefusedPushes[]
  readonly endpoints: readonly EndpointState[]
  /** The address that operator events are posted to; null: none is configured. */
  readonly operator: EndpointState | null
  readonly replicas: readonly Replica[]
  /** Why the clock is doubted; null: it is not. */
  readonly clockDoubt: ClockDoubt | null
  /** If the last backup failed: why, and since when every backup has failed. Null: it did not fail. */
  readonly backupFailing: { readonly sinceMs: number; readonly reason: string } | null
  /** What else is wrong, the gravest first. */
  readonly concerns: readonly DescribedConcern[]
}

export interface Situation extends Glance {
  readonly counts: StoreCounts
  /** Since when the disk is full or low, as operators were notified; null: it is neither, or they were not notified yet. */
  readonly diskSinceMs: number | null
  /** Since when too many pushes are lost, as operators were notified; null: they are not, or operators were not notified of it. */
  readonly lossySinceMs: number | null
  /** While the carrier fails: how many requests of apps got no answer since the hour in which that began. Null: it does not fail. */
  readonly unserved: { readonly fromMs: number; readonly count: number } | null
  /** The pushes in quarantine by reason. The reason with the newest push comes first. */
  readonly held: readonly HeldGroup[]
  /** The deliveries that wait for each endpoint in trouble, by endpoint id. */
  readonly backlogs: ReadonlyMap<string, EndpointBacklog>
  /** How each endpoint in trouble failed last, by endpoint id. */
  readonly failures: ReadonlyMap<string, FailureGroup>
  readonly webhook: WebhookView
  /** The parcels that rules find stalled; null: no rule watches over parcels. This is no problem of the relay. */
  readonly stalled: Stalled | null
  /** The missed pushes of each of the last 24 hours, the oldest hour first. */
  readonly missedByHour: readonly MissedInHour[]
}

export interface Stalled {
  readonly parcels: number
  /** False: there are so many that not all were counted. */
  readonly isAll: boolean
}

/** The address of the public listener to which the carrier pushes. */
export interface WebhookView {
  /** The setting `webhook.path`. */
  readonly path: string
  /** Other paths to which requests were posted at this replica since its start. The path that was requested last comes first. */
  readonly misdirected: readonly MisdirectedPath[]
}

export type Problem =
  | { readonly kind: 'not_ready'; readonly reason: string }
  | { readonly kind: 'credentials_refused' }
  | { readonly kind: 'carrier_failing' }
  | { readonly kind: 'pushes_silent' | 'pushes_lossy' }
  | { readonly kind: 'silence_over'; readonly silence: PastSilence }
  | { readonly kind: 'pushes_refused'; readonly refused: readonly RefusedPushes[] }
  | { readonly kind: 'endpoint_failing' | 'endpoint_disabled'; readonly state: EndpointState }
  /** Operator events do not arrive. */
  | { readonly kind: 'operator_unheard'; readonly state: EndpointState }
  | { readonly kind: 'quarantined'; readonly count: number }
  | { readonly kind: 'disk_full' | 'disk_low'; readonly disk: DiskRoom }
  | { readonly kind: 'backup_failing'; readonly sinceMs: number; readonly reason: string }
  | { readonly kind: 'clock_doubted'; readonly doubt: ClockDoubt }
  | { readonly kind: 'settings_differ' }
  | { readonly kind: ConcernKind; readonly concern: DescribedConcern }

/** Whether an endpoint is in trouble: it fails, or it was disabled and no operator has decided what to do with it. */
export function isInTrouble({ disabled, health }: EndpointState): boolean {
  return disabled === null ? health.probing !== null : disabled === 'gone' || disabled === 'failing'
}

/**
 * With this many pushes in quarantine, the carrier has probably changed its format. Then new parcels stay unknown, so somebody must look at once.
 * Fewer pushes can wait.
 */
export const MANY_QUARANTINED = 10

/** Whether a problem can wait until the morning. The command `status` exits with 1 if any problem cannot wait. */
export function isWarning(problem: Problem): boolean {
  if (problem.kind === 'quarantined') return problem.count < MANY_QUARANTINED
  if (problem.kind === 'clock_doubted') return problem.doubt.because === 'jumped'
  return 'concern' in problem ? problem.concern.canWait : CAN_WAIT.includes(problem.kind)
}

const CAN_WAIT: readonly Problem['kind'][] = [
  'pushes_lossy',
  'silence_over',
  'pushes_refused',
  'settings_differ',
  'disk_low',
  'backup_failing',
]

const DAY_MS = 86_400_000

/** Returns the last period without pushes, if it ended less than a day ago. Parcels whose pushes were missed may still be unknown that long. */
export function pastSilenceOf({ lastSilence }: PushChannelView, nowMs: number): PastSilence | null {
  return lastSilence !== null && lastSilence.toMs > nowMs - DAY_MS ? lastSilence : null
}

/** Finds the problems, the worst first; empty: everything works. */
export function problemsOf(glance: Glance): readonly Problem[] {
  const { notReady, counts, disk, carrier, pushes, endpoints, operator, replicas, backupFailing } = glance
  const concerns = glance.concerns.map((concern): Problem => ({ kind: concern.kind, concern }))
  const troubled = endpoints.filter(isInTrouble).map((state): Problem => {
    return { kind: state.disabled === null ? 'endpoint_failing' : 'endpoint_disabled', state }
  })
  const quarantined = ofQuarantine(counts)
  return [
    ...ofDisk(disk, 'disk_full'),
    ...notReady
      .filter((reason) => disk === null || !reason.startsWith(`${DISK_FULL}:`))
      .map((reason): Problem => ({ kind: 'not_ready', reason })),
    ...ofCarrier(carrierStanding(carrier)),
    ...ofClock(glance).filter((problem) => !isWarning(problem)),
    ...concerns.filter((problem) => !isWarning(problem)),
    ...(pushes.health === 'silent' ? [{ kind: 'pushes_silent' } as const] : []),
    ...quarantined.filter((problem) => !isWarning(problem)),
    ...troubled,
    ...(operator !== null && isInTrouble(operator) ? [{ kind: 'operator_unheard', state: operator } as const] : []),
    ...(pushStanding(pushes) === 'lossy' ? [{ kind: 'pushes_lossy' } as const] : []),
    ...ofPast(glance),
    ...ofDisk(disk, 'disk_low'),
    ...quarantined.filter(isWarning),
    ...ofClock(glance).filter(isWarning),
    ...(backupFailing === null ? [] : [{ kind: 'backup_failing', ...backupFailing } as const]),
    ...concerns.filter(isWarning),
    ...(new Set(replicas.map(({ configFingerprint }) => configFingerprint)).size > 1 ? [{ kind: 'settings_differ' } as const] : []),
  ]
}

/**
 * Whether polls replace missing pushes. They do so only for parcels that the relay knows. A parcel that no push, app or operator has named is never
 * polled.
 */
export function doPollsReplacePushes({ carrier, notReady }: Situation): boolean {
  const { kind } = carrierStanding(carrier)
  return notReady.length === 0 && kind !== 'refused' && kind !== 'failing'
}

/** Whether pushes only seem to be missing: they do come, but the newest is in quarantine, because the relay does not understand it. */
export function areOnlyMisunderstood({ pushes, held }: Pick<Situation, 'pushes' | 'held'>): boolean {
  return pushes.health === 'silent' && held.some(({ last }) => last.receivedAtMs > (pushes.lastPushAtMs ?? 0))
}

/**
 * Returns the wrong paths to which something was posted after the last push. They may explain why no pushes come. Paths of signed requests come
 * first; within each group, the most frequent path comes first.
 */
export function misdirectedSincePush({ pushes, webhook }: Pick<Situation, 'pushes' | 'webhook'>): readonly MisdirectedPath[] {
  const since = webhook.misdirected.filter(({ lastAtMs }) => lastAtMs > (pushes.lastPushAtMs ?? 0))
  return since.toSorted((a, b) => Number(b.isSigned) - Number(a.isSigned) || b.count - a.count)
}

/** Finds problems that are over but may have left work: the carrier may never send the missing pushes again. */
function ofPast({ pushes, pastSilence, refused }: Glance): readonly Problem[] {
  const notStored = refused.filter(({ cause }) => cause === 'not_stored')
  const lacksNone = hasAllComeAgain(notStored)
  return [
    ...(pastSilence === null || pushes.health === 'silent' ? [] : [{ kind: 'silence_over', silence: pastSilence } as const]),
    ...(lacksNone ? [] : [{ kind: 'pushes_refused', refused: notStored } as const]),
  ]
}

function ofClock({ clockDoubt }: Glance): readonly Problem[] {
  return clockDoubt === null ? [] : [{ kind: 'clock_doubted', doubt: clockDoubt }]
}

function ofQuarantine({ quarantined }: Glance['counts']): readonly Problem[] {
  return quarantined === 0 ? [] : [{ kind: 'quarantined', count: quarantined }]
}

function ofDisk(disk: DiskRoom | null, kind: 'disk_full' | 'disk_low'): readonly Problem[] {
  if (disk === null || !isDiskLow(disk)) return []
  return isDiskFull(disk) === (kind === 'disk_full') ? [{ kind, disk }] : []
}

/** Finds the problem with the carrier, if any. A single failed call is no problem: the circuit breaker decides when enough calls have failed. */
function ofCarrier({ kind }: CarrierStanding): readonly Problem[] {
  if (kind === 'refused') return [{ kind: 'credentials_refused' }]
  return kind === 'failing' ? [{ kind: 'carrier_failing' }] : []
}

/** Whether the relay knows no parcel yet and waits for its first push. */
export function isNew({ counts, pushes }: Situation): boolean {
  return counts.parcels === 0 && pushes.lastPushAtMs === null
}

/** Says in a few sentences that an endpoint is in trouble, and which command shows why. Null: it is not in trouble. */
export function describeTrouble(state: EndpointState): string | null {
  if (!isInTrouble(state)) return null
  const { endpoint, disabled, health } = state
  const look = `See: parcel-relay endpoints show ${typedName(endpoint)}.`
  if (disabled === 'gone') return `It answered 410 Gone and is disabled. ${look}`
  if (disabled !== null) return `It failed for 120 h and is disabled. ${look}`
  // Say "has accepted nothing since", because "has failed since" would be wrong: while the relay was stopped, nothing was attempted.
  const since = health.failingSinceMs === null ? '' : ` since ${new Date(health.failingSinceMs).toISOString()}`
  return `It fails, and has accepted nothing${since}. ${look}`
}

/** How many missed pushes were noticed in the hour that begins at `fromMs`. */
interface MissedInHour {
  readonly fromMs: number
  readonly count: number
}

/** The pushes that the relay itself answered with 503 in the last day, and how many missed pushes they explain. */
export interface OwnRefusals {
  /** The periods in which the relay refused pushes, the newest first. */
  readonly spells: readonly RefusedPushes[]
  /** How many missed pushes were noticed in the last day. `explained`: how many of them were noticed while pushes were refused, or soon after. */
  readonly missed: number
  readonly explained: number
  /** Whether almost all missed pushes are explained, so that nobody need look for another cause. */
  readonly explainMost: boolean
}

const HOUR_MS = 3_600_000
/** How late a missed push may be noticed. The relay does not poll while the disk is full, and afterwards needs time to catch up. */
export const NOTICED_WITHIN_MS = 3 * HOUR_MS
/** The share of missed pushes from which `explainMost` is true. */
const MOST = 0.8

/** Counts the missed pushes that the relay's own refusals explain. Null: the refusals explain no missed push. */
export function ownRefusalsOf(refused: readonly RefusedPushes[], missedByHour: readonly MissedInHour[]): OwnRefusals | null {
  const spells = refused.filter(({ cause }) => cause === 'not_stored' || cause === 'overload')
  const isExplained = ({ fromMs }: MissedInHour) =>
    spells.some((spell) => fromMs + HOUR_MS > spell.fromMs && fromMs <= spell.untilMs + NOTICED_WITHIN_MS)
  const [missed, explained] = [sumOf(missedByHour), sumOf(missedByHour.filter(isExplained))]
  return explained === 0 ? null : { spells, missed, explained, explainMost: explained >= missed * MOST }
}

function sumOf(hours: readonly MissedInHour[]): number {
  return hours.reduce((sum, { count }) => sum + count, 0)
}
