import { counted, countText, spanText } from '../../core/domain/amounts.ts'
import type { PushChannelView } from '../../core/domain/polling/poll.ts'
import { LOSSY_ABOVE, TRIAL_PUSHES } from '../../core/domain/polling/push-health.ts'
import { agoWord, timeWord, type Word } from '../../core/domain/words.ts'

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
