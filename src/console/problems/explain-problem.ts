import type { ClockDoubt } from '../../core/domain/admin/clock-record.ts'
import { type DiskRoom, isDiskFull, LOW_AT } from '../../core/domain/admin/disk-room.ts'
import { bytesText, counted, spanText } from '../../core/domain/amounts.ts'
import { FAILING_MAX_MS } from '../../core/domain/delivery/delivery.ts'
import { type EndpointState, typedName } from '../../core/domain/delivery/endpoint-state.ts'
import {
  type CarrierStanding,
  type CarrierState,
  carrierRemedy,
  carrierStanding,
  lastFailureText,
  pauseText,
} from '../../core/domain/polling/carrier-answer.ts'
import {
  type Explanation,
  explainLoss,
  explainMisunderstood,
  explainPastSilence,
  explainQuarantined,
  explainRefused,
  explainSilence,
} from './explain-pushes.ts'
import { areOnlyMisunderstood, type Problem, type PushStanding, pushStanding, type Situation } from './verdict.ts'
import { agoWord, codeWord, extentOf, failureSentence, remedySentence, type Sentence, timeWord, wordFailure } from './words.ts'

const RELOAD = 'then reload: parcel-relay reload.'

export const CORRECT_PASSWORD: Sentence = ['Correct ', codeWord('upstream.password'), `, ${RELOAD}`]

/** Removes the code at the start of a reason such as `store_lost: ...`. The code is for programs. */
export function readableReason(reason: string): string {
  const words = reason.replace(/^[a-z_]+: /, '')
  // A name such as relay.db keeps its case.
  return words.replace(/^[a-z]+(?= |$)/, (first) => `${first.charAt(0).toUpperCase()}${first.slice(1)}`)
}

/** Explains a problem, for a terminal and for the portal, which turns commands into links and adds buttons. */
export function explainProblem(problem: Problem, situation: Situation, nowMs: number): Explanation {
  if ('concern' in problem) return problem.concern
  switch (problem.kind) {
    case 'not_ready':
      return {
        title: 'The relay is not ready',
        sinceMs: null,
        evidence: [`${readableReason(problem.reason)}.`],
        todo: ['The log says more. Mend the cause; the relay goes on by itself.'],
      }
    case 'credentials_refused':
      return {
        title: 'The carrier refuses our password',
        sinceMs: situation.carrier.refusal?.atMs ?? null,
        evidence: [
          ...(situation.carrier.refusal === null ? [] : [refusalWords(situation.carrier.refusal, nowMs)]),
          'The relay makes no calls meanwhile. Pushes still come; apps are answered from the store.',
        ],
        todo: [CORRECT_PASSWORD],
      }
    case 'carrier_failing':
      return explainCarrier(situation, nowMs)
    case 'pushes_silent':
      return areOnlyMisunderstood(situation) ? explainMisunderstood(situation, nowMs) : explainSilence(situation, nowMs)
    case 'pushes_lossy':
      return explainLoss(situation, nowMs)
    case 'silence_over':
      return explainPastSilence(problem.silence)
    case 'pushes_refused':
      return explainRefused(problem.refused)
    case 'endpoint_failing':
    case 'endpoint_disabled':
      return explainEndpoint(problem, situation, nowMs)
    case 'operator_unheard':
      return explainOperator(problem.state, situation)
    case 'quarantined':
      return explainQuarantined(problem.count, situation, nowMs)
    case 'disk_full':
    case 'disk_low':
      return explainDisk(problem.disk, situation, nowMs)
    case 'backup_failing':
      return {
        title: 'No backup can be made',
        sinceMs: problem.sinceMs,
        evidence: [`${problem.reason}.`, 'The relay works. If its store were lost now, only older backups could be restored.'],
        todo: [
          ['Mend the folder of backups, or name another in ', codeWord('backup.directory'), `, ${RELOAD}`],
          'Make one: parcel-relay backup NAME.',
        ],
      }
    case 'clock_doubted':
      return explainClock(problem.doubt)
    case 'settings_differ':
      return {
        title: 'Replicas run with different settings',
        sinceMs: null,
        evidence: ['They share one store, and act differently on it.'],
        todo: ['Give all replicas the same config file, then restart the ones that differ.'],
      }
  }
}

export function explainClock({ because, aheadMs }: ClockDoubt): Explanation {
  const by = `${spanText(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead' : 'behind'}`
  const evidence =
    because === 'jumped'
      ? `It went ${spanText(aheadMs)} ahead at once, or the relay was stopped that long.`
      : `It is ${by} ${because === 'carrier' ? 'of the clock of the carrier' : "of the clock of the relay's machine"}.`.replace(
          'behind of',
          'behind',
        )
  return {
    title: 'The clock may be wrong',
    sinceMs: null,
    evidence: [evidence, 'Until that is settled, retention removes nothing and no parcel becomes stale.'],
    todo:
      because === 'jumped'
        ? [
            'If the clock is wrong, have the machine set it by NTP. If it is right, do nothing: it is trusted after a day. An operator can start a pass of retention before.',
          ]
        : ['Find out which clock is wrong, and have its machine set it by NTP. A database server has a clock of its own.'],
  }
}

function explainCarrier({ carrier, unserved }: Situation, nowMs: number): Explanation {
  const { lastFailure, breaker } = carrier
  return {
    title: 'The carrier fails to answer',
    sinceMs: breaker.sinceMs ?? null,
    evidence: [
      lastFailure === null
        ? 'The last failure is not known.'
        : [
            'The last failure, ',
            agoWord(lastFailure.atMs, nowMs),
            `: ${lastFailureText(lastFailure)}`,
            ...(lastFailure.said === undefined ? [] : [' ', { kind: 'said', text: lastFailure.said } as const]),
            '.',
          ],
      `${pauseText(breaker)} To have it ask at once: parcel-relay check.`,
      'Polls wait meanwhile, so what lost pushes would have told is not found until the carrier answers.',
      [
        'Pushes still come. Apps are answered from the store; a parcel that the relay does not know gets 503',
        ...(unserved === null || unserved.count === 0
          ? []
          : [`: ${counted(unserved.count, 'request', 'requests')} since `, timeWord(unserved.fromMs)]),
        '.',
      ],
    ],
    todo: [carrierRemedy(lastFailure)],
  }
}

/** Says who refused the password, when, and when the relay tries again. */
export function refusalWords({ atMs, by, retryMs }: NonNullable<CarrierState['refusal']>, nowMs: number): Sentence {
  const who =
    by === 'status_api'
      ? 'The login gave a token, and the carrier refused it (401)'
      : by === 'token_endpoint'
        ? 'The carrier’s login refused the user name and password'
        : 'The carrier refused the user name and password'
  const again =
    retryMs > 0
      ? `The same password is tried again in ${spanText(retryMs)}, a corrected one at once.`
      : 'It is tried again with the next call.'
  return [who, ...(atMs === null ? [] : [' ', agoWord(atMs, nowMs)]), `. ${again}`]
}

function explainEndpoint(
  { kind, state }: Extract<Problem, { kind: 'endpoint_failing' | 'endpoint_disabled' }>,
  { backlogs, failures }: Situation,
  nowMs: number,
): Explanation {
  const { id, name } = state.endpoint
  const [backlog, failure] = [backlogs.get(id), failures.get(id)]
  const typed = typedName(state.endpoint)
  const words = failure === undefined ? null : wordFailure(failure, state.endpoint.url, extentOf(state, failure))
  const remedy = words === null ? null : remedySentence(words, { origin: state.origin, name, typed })
  const look = `See its answers: parcel-relay endpoints show ${typed}.`
  const oldest = backlog?.oldestAtMs ?? null
  const waiting =
    backlog === undefined
      ? 'Its events wait.'
      : `${counted(backlog.waiting, 'event waits', 'events wait')}${oldest === null ? '' : `, the oldest for ${spanText(nowMs - oldest)}`}.`
  const evidence = words === null ? [] : [failureSentence(words)]
  if (kind === 'endpoint_failing')
    return {
      title: `${name} fails`,
      sinceMs: state.health.failingSinceMs,
      evidence: [
        ...evidence,
        [
          `${waiting} None is lost: they are sent in order once it answers with 2xx. If every attempt fails until `,
          timeWord(nowMs + Math.max(0, FAILING_MAX_MS - state.health.failedForMs)),
          ', the relay disables it, and its events keep waiting.',
        ],
      ],
      todo: [
        remedy === null || words?.change === null ? `${remedy ?? ''} ${look}`.trim() : remedy,
        `When it is mended: parcel-relay endpoints retry ${typed}.`,
      ],
    }
  return {
    title: `${name} ${state.disabled === 'gone' ? 'answered 410 Gone and is disabled' : 'failed for 120 h and is disabled'}`,
    sinceMs: state.disabledSince?.atMs ?? null,
    evidence: [...evidence, `${waiting} None is lost.`],
    todo: [
      ...(remedy === null ? [] : [remedy]),
      `Ask the people who run ${name} to mend it, then enable it: parcel-relay endpoints enable ${typed}.`,
      `If nobody needs it any more: parcel-relay endpoints disable ${typed}, or parcel-relay endpoints remove ${typed}.`,
    ],
  }
}

function explainOperator({ endpoint, disabled, disabledSince, health }: EndpointState, { backlogs, failures }: Situation): Explanation {
  const [backlog, failure] = [backlogs.get(endpoint.id), failures.get(endpoint.id)]
  const words = failure === undefined ? null : wordFailure(failure, endpoint.url, 'some')
  const waiting = backlog === undefined ? 'They wait' : `${counted(backlog.waiting, 'event waits', 'events wait')}`
  const because = disabled === 'gone' ? ': operator.url answered 410 Gone' : disabled === null ? '' : ': operator.url failed for 120 h'
  return {
    title: `Operators are not told what happens${because}`,
    sinceMs: disabled === null ? health.failingSinceMs : (disabledSince?.atMs ?? null),
    evidence: [
      ...(words === null ? [] : [failureSentence(words)]),
      `${waiting}. None is lost${disabled === null ? '' : ', and the relay tries again once a day'}.`,
    ],
    todo: [
      words === null
        ? ['Correct ', codeWord('operator.url'), `, ${RELOAD} Or mend what receives its events.`]
        : remedySentence(words, { origin: 'operator', name: 'it', typed: '' }),
      disabled === null ? 'Then send a test event: parcel-relay operator test.' : 'Then enable it: parcel-relay operator enable.',
    ],
  }
}

function explainDisk(
  disk: DiskRoom,
  { diskSinceMs: sinceMs, pushes: { lastPushAtMs, restoredAtMs } }: Situation,
  nowMs: number,
): Explanation {
  const { freeBytes, freeBytesMin, totalBytes, storeBytes, path } = disk
  const usedBytes = totalBytes - freeBytes
  const others = storeBytes < usedBytes / 2 ? ': something else fills it' : ''
  const usage: Sentence = [
    'On the disk of ',
    codeWord(path),
    ` ${bytesText(usedBytes)} of ${bytesText(totalBytes)} are used, ${bytesText(storeBytes)} by the store${others}.`,
  ]
  if (!isDiskFull(disk))
    return {
      title: `${bytesText(freeBytes)} are free on the store’s disk`,
      sinceMs,
      evidence: [`Below ${bytesText(freeBytesMin)} pushes are answered with 503. Nothing is lost now.`, usage],
      todo: ['Make room on that disk, or ask the people who run the machine to.'],
    }
  return {
    title: 'The store’s disk is full: pushes are refused',
    sinceMs,
    evidence: [
      `${bytesText(freeBytes)} are free; the relay needs ${bytesText(freeBytesMin)}. It answers pushes with 503, and does not poll. A carrier gives up sending a push again after some time. Once there is room, polls find the entries of such pushes, if the relay knows their parcels.`,
      'Apps are answered from the store; a parcel that the relay does not know gets 503. Webhooks are sent to, while the store can write down what was sent; with no byte free their events wait, and none is lost.',
      ...(lastPushAtMs === null || restoredAtMs !== null
        ? []
        : [['The last push with something new was accepted ', agoWord(lastPushAtMs, nowMs), '.']]),
      usage,
    ],
    todo: [
      `Free ${bytesText(freeBytesMin - freeBytes)} or more on that disk, ${bytesText(LOW_AT * freeBytesMin - freeBytes)} so that it lasts, or ask the people who run the machine to.`,
      'Do not restart the relay before: with no byte free it may not start.',
      'With room it goes on by itself. Then ask the carrier to send again what was refused.',
    ],
  }
}

export const STATE_TONES = ['ok', 'warn', 'bad', 'off', 'none'] as const

/** A state as the command `status` and the portal show it. `off`: it rests because of another state; `none`: there is no evidence yet. */
export interface StateWords {
  readonly tone: (typeof STATE_TONES)[number]
  readonly words: string
}

type Pair = readonly [tone: StateWords['tone'], words: string]

const PUSHES: Readonly<Record<PushStanding, Pair>> = {
  none: ['none', 'none yet'],
  too_early: ['none', 'too early to tell'],
  healthy: ['ok', 'arriving'],
  resumed: ['warn', 'arriving again'],
  lossy: ['warn', 'arriving, many are lost'],
  not_understood: ['warn', 'many are not understood'],
  silent: ['bad', 'silent'],
}

const CARRIER: Readonly<Record<CarrierStanding['kind'], Pair>> = {
  refused: ['bad', 'refuses our password'],
  failing: ['bad', 'failing, calls pause'],
  troubled: ['warn', 'the last call failed'],
  answers: ['ok', 'the last call was answered'],
  unasked: ['none', 'not asked yet'],
}

export function pushStateWords(situation: Pick<Situation, 'notReady' | 'pushes' | 'held'>): StateWords {
  if (situation.notReady.length > 0) return wordsOf(['bad', 'refused'])
  if (areOnlyMisunderstood(situation)) return wordsOf(['bad', 'not understood'])
  return wordsOf(PUSHES[pushStanding(situation.pushes)])
}

/** A relay that is not ready does not poll. */
export function carrierStateWords({ notReady, carrier }: Pick<Situation, 'notReady' | 'carrier'>): StateWords {
  return wordsOf(notReady.length > 0 ? ['off', 'not polled'] : CARRIER[carrierStanding(carrier).kind])
}

function wordsOf([tone, words]: Pair): StateWords {
  return { tone, words }
}
