import type { ClockDoubt, OtherClocks } from '../../core/domain/admin/clock-record.ts'
import { isDiskFull, isDiskLow } from '../../core/domain/admin/disk-room.ts'
import { CARRIER_TROUBLE, type CarrierState, failureCode } from '../../core/domain/polling/carrier-answer.ts'
import type { Relay, Writes } from '../../core/flow/relay-part.ts'
import type { ShownCertificate } from '../../core/wiring/certificates.ts'
import { CERTIFICATE_SUBJECTS, DISK_SUBJECTS, EXPIRING_MS, type TroubleBegun, type TroubleEnded } from '../problems/trouble.ts'
import type { Unstored } from './unstored.ts'

export interface TroubleWatchPorts extends Pick<Relay, 'clock' | 'log'>, Writes<'endTrouble' | 'lookAtClock'> {
  readonly unstored: Pick<Unstored, 'write' | 'sinceMs' | 'drop'>
  readonly otherClocks: () => OtherClocks
  readonly carrier: () => CarrierState
  /** Free bytes on the disk of the store; infinity: the store is on a server, or the disk was not measured yet. */
  readonly freeBytes: () => number
  readonly certificates: () => readonly ShownCertificate[]
  /** The counts of refused pushes. The end of a full disk tells how many were refused. */
  readonly refused: {
    /** Resolves with when the first push was refused after `afterMs` because of the trouble, or with the time. */
    readonly troubleBegins: (afterMs: number) => Promise<number>
    readonly save: () => Promise<void>
  }
  /** Whether this replica is the poller, the only one that judges the carrier. */
  readonly isPoller: () => boolean
  /** Called when an operator event was queued. */
  readonly wake: () => void
}

export interface TroubleWatchOptions {
  /** Pushes are refused while fewer bytes are free. */
  readonly freeBytesMin: number
  readonly replica: string
}

/** The end of `disk_low` is reported when this many times `freeBytesMin` is free. The margin keeps small changes from being reported. */
const ROOM_AT = 2.5
/** The end of `disk_full` is reported when this many times `freeBytesMin` is free. */
export const USABLE_AT = 1.1
/** The carrier has recovered if it has answered, and has not failed for this long. */
const RECOVERED_AFTER_MS = 10_000

type Standing = 'trouble' | 'well' | 'unknown'

/** The state in which a subject was found, and the events that report a change. */
interface Finding {
  readonly standing: Standing
  readonly subject: string
  readonly begun: TroubleBegun['event']
  /** The event that reports the end; null: the end is not reported. */
  readonly ended: TroubleEnded['event'] | null
  readonly ofRole?: 'poller'
  /** When the trouble has begun, if that was before it was found. */
  readonly sinceMs?: number
}

/**
 * Creates a function that looks for troubles of the carrier, its credentials, the clock, the disk, and certificates. The function
 * never rejects. A beginning that cannot be stored is kept (`unstored`); an end that cannot be stored is tried again by the next call.
 */
export function createTroubleWatch(ports: TroubleWatchPorts, options: TroubleWatchOptions): () => Promise<void> {
  const { write, unstored, clock, log, wake } = ports
  /** For each subject, whether the store holds a trouble of it, as far as this replica knows. */
  const known = new Map<string, Standing>()
  const lookAtCarrier = createCarrierLook(ports)
  const lookAtDisk = createDiskLook(ports, options)
  const lookAtClock = createClockLook(ports)

  async function tell({ standing, subject, begun, ended, ofRole, sinceMs }: Finding): Promise<void> {
    const common = { subject, nowMs: clock.now(), ...(ofRole === undefined ? {} : { ofRole }) }
    if (standing === 'trouble' && known.get(subject) !== standing) {
      known.set(subject, standing)
      await unstored.write({ kind: 'trouble', begun: { ...common, nowMs: sinceMs ?? common.nowMs, event: begun } })
    }
    // A beginning that is not stored yet is stored first, with its true time, even if the trouble is over by then.
    if (standing !== 'well' || known.get(subject) === standing || ended === null || unstored.sinceMs(subject) !== null) return
    const isTold = await write.endTrouble({ ...common, event: ended })
    known.set(subject, standing)
    if (isTold) wake()
  }

  return async () => {
    const isPoller = ports.isPoller()
    const ofCarrier = [...lookAtCarrier(isPoller), await lookAtClock()]
    // Forget the troubles of the carrier and the clock, because another replica may report on them meanwhile.
    if (!isPoller)
      for (const { subject } of ofCarrier) {
        known.delete(subject)
        unstored.drop(subject)
      }
    const findings = [...(isPoller ? ofCarrier : []), ...(await lookAtDisk()), ...lookAtCertificates(ports, options)]
    for (const finding of findings)
      await tell(finding).catch((err: unknown) =>
        log.debug({ err, subject: finding.subject }, 'operators could not be notified of a change; the relay tries again'),
      )
  }
}

function createCarrierLook({ carrier, clock }: Pick<TroubleWatchPorts, 'carrier' | 'clock'>): (isPoller: boolean) => readonly Finding[] {
  let failedAtMs = Number.NEGATIVE_INFINITY
  let answeredBefore: number | null = null
  return (isPoller) => {
    const { breaker, credentials, lastAnswerAtMs, lastFailure } = carrier()
    // While another replica polls, this replica does not see the carrier's answers. After this replica has become the poller, only a new
    // answer shows that the carrier has recovered.
    if (!isPoller) answeredBefore = lastAnswerAtMs
    const isFailing = breaker.state !== 'closed'
    if (isFailing) failedAtMs = clock.monotonic()
    const hasRecovered = lastAnswerAtMs !== answeredBefore && clock.monotonic() - failedAtMs >= RECOVERED_AFTER_MS
    return [
      {
        subject: CARRIER_TROUBLE,
        standing: isFailing ? 'trouble' : hasRecovered ? 'well' : 'unknown',
        begun: {
          event: 'carrier_failing',
          reason: lastFailure === null ? null : failureCode(lastFailure),
          status: lastFailure?.status ?? null,
          since: new Date(breaker.sinceMs ?? clock.now()).toISOString(),
        },
        ended: { event: 'carrier_recovered' },
        ofRole: 'poller',
      },
      {
        subject: 'credentials',
        standing: credentials === 'refused' ? 'trouble' : credentials === 'unknown' ? 'unknown' : 'well',
        begun: { event: 'credentials_refused' },
        ended: { event: 'credentials_accepted' },
        ofRole: 'poller',
      },
    ]
  }
}

/** The poller judges the clock, because it hears the carrier's. A failure of the store says nothing about the clock. */
function createClockLook({ write, otherClocks, log }: Pick<TroubleWatchPorts, 'write' | 'otherClocks' | 'log'>): () => Promise<Finding> {
  let known: ClockDoubt | null = null
  return async () => {
    const doubt = await write.lookAtClock(otherClocks()).catch(() => known)
    if (doubt !== null && doubt.because !== known?.because)
      log.warn({ ...doubt }, 'the clock may be wrong: retention removes nothing, and no parcel becomes stale, until that is settled')
    if (doubt === null && known !== null) log.info({}, 'the clock is trusted again')
    known = doubt
    return {
      subject: 'clock',
      standing: doubt === null ? 'well' : 'trouble',
      begun: { event: 'clock_doubted', because: doubt?.because ?? 'jumped', aheadMs: doubt?.aheadMs ?? 0 },
      ended: { event: 'clock_trusted' },
      ofRole: 'poller',
    }
  }
}

/**
 * A nearly full disk is one trouble. A disk so full that pushes are refused is a second trouble, which begins and ends while the first one
 * lasts. The end of the second trouble is reported a little after `takenFromMs`, and the report names `takenFromMs`.
 */
function createDiskLook({ freeBytes, refused, clock }: TroubleWatchPorts, { freeBytesMin }: TroubleWatchOptions) {
  let wasFull = false
  /** Since when pushes are accepted; null: they are refused. */
  let takenFromMs: number | null = clock.now()
  /** When the first push was refused because the disk is full. */
  let refusedFromMs: number | null = null
  return async (): Promise<readonly Finding[]> => {
    const free = freeBytes()
    const room = { freeBytes: free, freeBytesMin }
    const standingOf = (isTrouble: boolean, wellAt: number): Standing =>
      isTrouble ? 'trouble' : Number.isFinite(free) && free >= wellAt * freeBytesMin ? 'well' : 'unknown'
    const isFull = isDiskFull(room)
    if (isFull && !wasFull) refusedFromMs = await refused.troubleBegins(takenFromMs ?? 0).catch(() => clock.now())
    takenFromMs = isFull ? null : (takenFromMs ?? clock.now())
    const standing = standingOf(isFull, USABLE_AT)
    // The event of the end is counted from what is saved. While the store cannot be written, the event is not stored either.
    if (wasFull && standing === 'well') await refused.save().catch(() => undefined)
    wasFull = isFull || (wasFull && standing !== 'well')
    const until = new Date(takenFromMs ?? clock.now()).toISOString()
    return [
      {
        subject: DISK_SUBJECTS.full,
        standing,
        begun: { event: 'disk_full', ...room },
        ended: { event: 'disk_usable', freeBytes: free, until },
        ...(refusedFromMs === null ? {} : { sinceMs: refusedFromMs }),
      },
      {
        subject: DISK_SUBJECTS.low,
        standing: standingOf(isDiskLow(room), ROOM_AT),
        begun: { event: 'disk_low', ...room },
        ended: { event: 'disk_recovered', freeBytes: free },
      },
    ]
  }
}

/** Each certificate is a separate subject, so that a renewed certificate is reported before it expires, too. */
function lookAtCertificates({ certificates, clock }: TroubleWatchPorts, { replica }: TroubleWatchOptions): readonly Finding[] {
  return certificates().map(({ listener, untilMs }) => ({
    subject: `${CERTIFICATE_SUBJECTS}${listener} ${untilMs}`,
    standing: untilMs - clock.now() < EXPIRING_MS ? 'trouble' : 'well',
    begun: { event: 'certificate_expiring', listener, expiresAt: new Date(untilMs).toISOString(), replica },
    ended: null,
  }))
}
