import { CLOCK_OFF_MS, describeClock, type Verdict } from '../../console/problems/concern.ts'
import { daysLeft, EXPIRING_MS } from '../../console/problems/trouble.ts'
import { isDiskFull, isDiskLow } from '../../core/domain/admin/disk-room.ts'
import { counted } from '../../core/domain/amounts.ts'
import type { StorageState } from '../../core/domain/history/erased.ts'
import { isHeldLong, PASS_LATE_MS, type RetentionReport } from '../retention/retention.rules.ts'

/** The checks, in the order in which they are shown. */
export const CHECK_NAMES = [
  'relay',
  'config',
  'keys',
  'store',
  'disk',
  'files',
  'open_files',
  'ports',
  'certificate',
  'credentials',
  'question',
  'clock',
  'push',
  'endpoint',
  'retention',
  'erasure',
  'backup',
] as const

export type CheckName = (typeof CHECK_NAMES)[number]

export interface CheckLine extends Verdict {
  readonly name: CheckName
  /** The name of the checked thing, such as an endpoint; null: there is only one of its kind. */
  readonly subject: string | null
}

/** One part of the check. If `look` rejects, the part has failed, and its line shows the message of the error. */
export interface Probe {
  readonly name: CheckName
  /** The name of the checked endpoint, for example; null: there is only one thing of this kind. */
  readonly subject: string | null
  readonly look: () => Promise<Verdict | readonly CheckLine[]>
}

export function isRed(lines: readonly CheckLine[]): boolean {
  return lines.some(({ state }) => state === 'failed')
}

/** Sorts lines into the order of `CHECK_NAMES`. Lines with the same name keep their order. */
export function inOrder(lines: readonly CheckLine[]): readonly CheckLine[] {
  return lines.toSorted((a, b) => CHECK_NAMES.indexOf(a.name) - CHECK_NAMES.indexOf(b.name))
}

export const ok = (message: string): Verdict => ({ state: 'ok', message })
export const warning = (message: string): Verdict => ({ state: 'warning', message })
export const failed = (message: string): Verdict => ({ state: 'failed', message })
export const skipped = (message: string): Verdict => ({ state: 'skipped', message })

const SECOND_MS = 1000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/** Not lower, because the carrier gives its time in whole seconds, and its answer takes a while to arrive. */
const CLOCK_WARNING_MS = 5 * SECOND_MS

/** @param aheadMs the carrier's clock minus the relay's; null: the carrier's answer has no time */
export function judgeClock(aheadMs: number | null): Verdict {
  if (aheadMs === null) return skipped("The carrier's answer had no time, so the clock was not compared.")
  if (Math.abs(aheadMs) < CLOCK_WARNING_MS) return ok(`It agrees with the carrier's to within ${CLOCK_WARNING_MS / SECOND_MS} s.`)
  const message = describeClock(aheadMs)
  return Math.abs(aheadMs) < CLOCK_OFF_MS ? warning(message) : failed(message)
}

const STARTS_WITH_BYTES = 2 ** 20

/** `diskBytes`: the size of the disk. */
export interface MeasuredDisk {
  readonly freeBytes: number
  readonly diskBytes: number
}

export function judgeDisk({ freeBytes, diskBytes }: MeasuredDisk, freeBytesMin: number): Verdict {
  const room = { freeBytes, freeBytesMin }
  const [free, least] = [sizeText(freeBytes), sizeText(freeBytesMin)]
  const small =
    freeBytesMin * 2 > diskBytes
      ? ` limits.freeSpaceMin (${least}) is more than half of the disk (${sizeText(diskBytes)}): lower it, or take a larger disk.`
      : ''
  const start = freeBytes < STARTS_WITH_BYTES ? ' With so little, a stopped relay may not start.' : ''
  if (isDiskFull(room))
    return failed(`${free} is free, less than limits.freeSpaceMin (${least}): pushes are refused. Make room.${small}${start}`)
  if (isDiskLow(room)) return warning(`${free} is free. Below ${least} (limits.freeSpaceMin) pushes are refused. Make room.${small}`)
  return small === '' ? ok(`${free} is free.`) : warning(`${free} is free.${small}`)
}

export function judgeCertificate(untilMs: number, nowMs: number): Verdict {
  const days = daysLeft(untilMs, nowMs)
  if (untilMs <= nowMs) return failed('It has expired. Replace its files, then reload: parcel-relay reload.')
  const message = `It is valid for ${days} more ${days === 1 ? 'day' : 'days'}.`
  return untilMs - nowMs < EXPIRING_MS ? warning(`${message} Replace its files, then reload: parcel-relay reload.`) : ok(message)
}

/** How many files a relay may open in addition to its connections. */
const OTHER_FILES = 200

/** @param limit how many files the process may open; null: there is no limit, or it cannot be read */
export function judgeOpenFiles(limit: number | null, connectionsMax: number): Verdict {
  if (limit === null) return ok('No limit of the system is known.')
  const wanted = 2 * connectionsMax + OTHER_FILES
  if (limit >= wanted) return ok(`The process may open ${limit} files.`)
  const message = `The process may open ${limit} files, and two listeners with limits.connections of ${connectionsMax} need ${wanted}. Raise the limit (ulimit -n, LimitNOFILE), or lower limits.connections.`
  return limit < connectionsMax + OTHER_FILES ? failed(message) : warning(message)
}

/** @param last the last retention pass; null: none has ended yet @param kept how long data is kept, as text */
export function judgeRetention(last: RetentionReport | null, kept: string, nowMs: number): Verdict {
  const message = `Data is kept: ${kept}.`
  if (last === null) return ok(message)
  const ageMs = nowMs - last.endedAtMs
  if (ageMs > PASS_LATE_MS) return failed(`No pass has ended for ${Math.floor(ageMs / HOUR_MS)} h, so nothing is removed. ${message}`)
  if (last.isClockDoubted) return warning('The clock was doubted, so nothing was removed. Set it right, or see why: parcel-relay status.')
  const held = Object.values(last.held).reduce((sum, count) => sum + count, 0)
  if (isHeldLong(last))
    return warning(
      `${held} records are past their time, and some have been held back for more than 30 days, because they are not delivered or settled yet.`,
    )
  return ok(message)
}

export function judgeErasure(storage: StorageState): Verdict {
  return storage.state === 'clean' ? ok('As far as the relay knows, its store file contains no erased data.') : warning(storage.because)
}

export interface BackupsToJudge {
  readonly directory: string | null
  readonly cron: string | null
  /** When the backups in the folder were made, epoch milliseconds, the newest first. */
  readonly madeAtMs: readonly number[]
  /** Scheduled backups whose names are of a time to come. */
  readonly ahead: readonly string[]
  readonly failing: { readonly reason: string } | null
  /** Why the folder cannot be read; null: it can be read. */
  readonly unreadable: string | null
}

/** A backup is late if the newest one is older than this many times the longest gap between two backups. */
const LATE_GAPS = 2
/** The least value of that longest gap. */
const GAP_MS = DAY_MS

export function judgeBackups({ directory, cron, madeAtMs, ahead, failing, unreadable }: BackupsToJudge, nowMs: number): Verdict {
  if (directory === null) return warning('No backup is made: name backup.directory and backup.cron.')
  if (unreadable !== null) return failed(`The folder of backups cannot be read: ${unreadable}`)
  if (failing !== null) return failed(`The last backup failed: ${failing.reason}`)
  const [newest] = madeAtMs
  if (newest === undefined) return warning(cron === null ? 'No backup was made or scheduled (backup.cron).' : 'No backup was made yet.')
  const ageMs = nowMs - newest
  const message = `The newest backup is ${ageMs < DAY_MS ? `${Math.max(0, Math.floor(ageMs / HOUR_MS))} h` : `${Math.floor(ageMs / DAY_MS)} days`} old.`
  if (ahead.length > 0)
    return warning(
      `${message} ${counted(ahead.length, 'name is', 'names are')} of times to come, because a clock was ahead (${ahead.slice(0, 3).join(', ')}): backup.keep does not count them, and nothing removes them before. Look when they were made (ls -l), and remove what you do not need.`,
    )
  if (cron === null) return warning(`${message} No further one is scheduled (backup.cron).`)
  const gaps = madeAtMs.slice(1).map((atMs, at) => (madeAtMs[at] ?? atMs) - atMs)
  return ageMs > LATE_GAPS * Math.max(GAP_MS, ...gaps) ? failed(`${message} The schedule should have made another one since.`) : ok(message)
}

const UNITS = ['KB', 'MB', 'GB', 'TB']

function sizeText(bytes: number): string {
  const at = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10) - 1))
  const size = bytes / 1024 ** (at + 1)
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${UNITS[at] ?? ''}`
}
