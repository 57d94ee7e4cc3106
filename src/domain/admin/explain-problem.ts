import { bytesText, counted, countText, spanText } from '../amounts.ts'
import { typedName } from '../delivery/endpoint.ts'
import type { EndpointState } from '../delivery/endpoint-state.ts'
import { extentOf, failureSentence, remedySentence, wordFailure } from '../delivery/failure-words.ts'
import type { MisdirectedPath } from '../ingest/misdirected.ts'
import { hasAllComeAgain, type RefusedPushes } from '../ingest/refused-pushes.ts'
import { carrierRemedy, lastFailureText } from '../polling/carrier-failure-words.ts'
import type { PastSilence } from '../polling/push-health.ts'
import { noPushSinceMs, pushEvidence } from '../polling/push-standing.ts'
import { plainText } from '../words.ts'
import type { ClockDoubt } from './clock-record.ts'
import { type DiskRoom, isDiskFull } from './disk-room.ts'
import { NOTICED_WITHIN_MS, type OwnRefusals, ownRefusalsOf } from './own-refusals.ts'
import { comebackText, spellText, wholeSpell } from './refused-words.ts'
import { areOnlyMisunderstood, misdirectedSincePush, type Problem, type Situation } from './verdict.ts'

export interface Explanation {
  /** One line without a full stop. */
  readonly title: string
  /** When the problem began, epoch milliseconds; null: not known. */
  readonly sinceMs: number | null
  readonly evidence: readonly string[]
  readonly todo: readonly string[]
}

const RELOAD = 'then reload: parcel-relay reload.'

const SETTLE_QUARANTINE = [
  'Ask the carrier whether it has changed its format, and whether it meant to.',
  'If the carrier returns to its old format, fetch the parcels that the pushes name, with parcel-relay inbox --refresh, and dismiss them: parcel-relay inbox --dismiss --state quarantined.',
  'If the new format stays, install a version of the relay that reads it, then reprocess: parcel-relay inbox --reprocess --state quarantined.',
]

/** Removes the code at the start of a reason such as `store_lost: ...`. The code is for programs. */
export function readableReason(reason: string): string {
  const words = reason.replace(/^[a-z_]+: /, '')
  // A name such as relay.db keeps its case.
  return words.replace(/^[a-z]+(?= |$)/, (first) => `${first.charAt(0).toUpperCase()}${first.slice(1)}`)
}

/** Explains a problem in plain text, for a terminal or a message. The portal says the same with links and buttons. */
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
        evidence: ['The relay makes no calls meanwhile. Pushes still come; apps are answered from the store.'],
        todo: [`Correct upstream.password, ${RELOAD}`],
      }
    case 'carrier_failing':
      return explainCarrier(situation)
    case 'pushes_silent':
      return areOnlyMisunderstood(situation) ? explainMisunderstood(situation) : explainSilence(situation)
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
      return {
        title: `${counted(problem.count, 'push is', 'pushes are')} in quarantine`,
        sinceMs: null,
        evidence: [
          'They are authentic, and the relay does not understand them. They are kept. A parcel that only they name is not polled.',
        ],
        todo: ['See why: parcel-relay inbox --state quarantined.', ...SETTLE_QUARANTINE],
      }
    case 'disk_full':
    case 'disk_low':
      return explainDisk(problem.disk, situation.diskSinceMs)
    case 'backup_failing':
      return {
        title: 'No backup can be made',
        sinceMs: problem.sinceMs,
        evidence: [`${problem.reason}.`, 'The relay works. If its store were lost now, only older backups could be restored.'],
        todo: [`Mend the folder of backups, or name another in backup.directory, ${RELOAD}`, 'Make one: parcel-relay backup NAME.'],
      }
    case 'clock_doubted':
      return { ...explainClock(problem.doubt), sinceMs: null }
    case 'settings_differ':
      return {
        title: 'Replicas run with different settings',
        sinceMs: null,
        evidence: ['They share one store, and act differently on it.'],
        todo: ['Give all replicas the same config file, then restart the ones that differ.'],
      }
  }
}

/** The portal says the same. */
export function explainClock({ because, aheadMs }: ClockDoubt): Pick<Explanation, 'title' | 'evidence' | 'todo'> {
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
    evidence: [evidence, 'Until that is settled, retention removes nothing and no parcel becomes stale.'],
    todo:
      because === 'jumped'
        ? [
            'If the clock is wrong, have the machine set it by NTP. If it is right, do nothing: it is trusted after a day. An operator can start a pass of retention before.',
          ]
        : ['Find out which clock is wrong, and have its machine set it by NTP. A database server has a clock of its own.'],
  }
}

function explainCarrier({ carrier }: Situation): Explanation {
  const { lastFailure, breaker } = carrier
  const reason = lastFailure === null ? 'unknown' : lastFailureText(lastFailure)
  return {
    title: 'The carrier fails to answer',
    sinceMs: breaker.sinceMs ?? null,
    evidence: [`The last failure: ${reason}. The relay asks again in ${spanText(breaker.restMs)}.`],
    todo: [carrierRemedy(lastFailure)],
  }
}

/** Tells operators not to wait for polls to find everything. */
export const UNHEARD_OF = 'Polls find nothing about parcels that no push has named yet: the relay does not know these parcels.'

/** Requests to a wrong path are the best evidence that the carrier pushes to a wrong address. */
export function describeMisdirected({ path, isSigned, count, firstAtMs }: MisdirectedPath, webhookPath: string): string {
  const unsigned = isSigned ? '' : ', without a signature'
  return `POST ${path}: 404, ${counted(count, 'time', 'times')} since ${timeText(firstAtMs)}${unsigned} (the webhook's path is ${webhookPath}).`
}

export const MISDIRECTED_SHOWN = 3

function timeText(atMs: number): string {
  return new Date(atMs).toISOString()
}

function explainSilence(situation: Situation): Explanation {
  const { pushes, webhook } = situation
  const misdirected = misdirectedSincePush(situation).slice(0, MISDIRECTED_SHOWN)
  return {
    title: 'No push comes',
    sinceMs: noPushSinceMs(pushes),
    evidence: [
      `The carrier scans as usual: polls found ${countText(pushes.missedSincePush)} entries since then that no push brought.`,
      ...misdirected.map((one) => describeMisdirected(one, webhook.path)),
      UNHEARD_OF,
    ],
    todo: [
      ...(misdirected.some(({ isSigned }) => isSigned)
        ? [
            `Pushes seem to come to another path: have the carrier push to https://YOUR-HOST${webhook.path}, or set webhook.path to the path it uses and restart.`,
          ]
        : [
            'Are there refused pushes since then: parcel-relay inbox --refused? Then pushes come, signed with another key than ours or in another way: the list says which.',
            `Ask the carrier to what address it pushes, and what answers it gets. The relay expects POST https://YOUR-HOST${webhook.path}, exactly this path; any other path gets 404.`,
            `From outside your network: curl -i https://YOUR-HOST${webhook.path}. The relay answers a GET with 405. After any other answer look at DNS, the firewall, the proxy and its certificate.`,
          ]),
      'When pushes come again, ask the carrier to send the missed ones again, or for a list of the parcels that are new since then. The runbook says how to watch these.',
    ],
  }
}

const SPELLS_SHOWN = 3

function explainLoss({ pushes, refused, missedByHour }: Situation, nowMs: number): Explanation {
  const own = ownRefusalsOf(refused, missedByHour)
  return {
    title: 'Many pushes are lost',
    sinceMs: null,
    evidence: [
      plainText(pushEvidence(pushes, nowMs)),
      ...(own === null ? [] : ownRefusalEvidence(own)),
      'Polls find the entries of lost pushes, but late.',
      UNHEARD_OF,
    ],
    todo: [...(own === null ? [] : ownRefusalTodo(own)), ...(own?.explainMost === true ? [] : OTHERS_LOSE_TODO)],
  }
}

/** Says how many lost pushes the relay itself refused, so that operators do not look for the cause at the carrier. */
function ownRefusalEvidence({ spells, missed, explained }: OwnRefusals): readonly string[] {
  return [
    `The relay itself refused pushes with 503: ${spells.slice(0, SPELLS_SHOWN).map(spellText).join(', ')}.`,
    `Of ${counted(missed, 'lost push', 'lost pushes')} noticed in the last 24 h, ${countText(explained)} ${explained === 1 ? 'was' : 'were'} noticed while it refused pushes, or up to ${spanText(NOTICED_WITHIN_MS)} later. Pushes that came only after a poll had found their events are counted too.`,
    ...listOfOne(comebackText(spells)),
  ]
}

function ownRefusalTodo({ spells, explainMost }: OwnRefusals): readonly string[] {
  const ask =
    'The carrier has not lost what the relay refused: ask it whether it sends refused pushes again. The runbook “Refused pushes” says what to do if not.'
  const wait =
    'The estimated share of lost pushes falls as further pushes come. Look at the carrier, and at the proxy in front of the relay, only if losses are still noticed hours after the last refusal.'
  return [...(hasAllComeAgain(spells) ? [] : [ask]), ...(explainMost ? [wait] : [])]
}

function listOfOne(text: string | null): readonly string[] {
  return text === null ? [] : [text]
}

const OTHERS_LOSE_TODO: readonly string[] = [
  'Look in the log of the proxy in front of the relay for answers to the carrier other than 200, and mend their cause.',
  'If there are none, the carrier loses them: send it the times of missed pushes, GET /relay/tallies?kind=missed.',
]

function explainPastSilence({ fromMs, toMs }: PastSilence): Explanation {
  return {
    title: `No push with news came for ${spanText(toMs - fromMs)}`,
    sinceMs: null,
    evidence: [`That was from ${timeText(fromMs)} until ${timeText(toMs)}. It is shown for a day.`, UNHEARD_OF],
    todo: [
      `Ask the carrier to send again what it had to push between these times. That is best: each event is recorded once, and goes to every endpoint.`,
      NEW_PARCELS,
    ],
  }
}

function explainRefused(refused: readonly RefusedPushes[]): Explanation {
  const earlier = refused.slice(SPELLS_SHOWN)
  return {
    title: `Pushes were answered with 503, ${counted(wholeSpell(refused).count, 'time', 'times')}`,
    sinceMs: null,
    evidence: [
      ...refused.slice(0, SPELLS_SHOWN).map((spell) => `${spellText(spell)}.`),
      ...(earlier.length === 0 ? [] : [`Before that ${spellText(wholeSpell(earlier))}, with pauses.`]),
      ...listOfOne(comebackText(refused)),
      'A push that was tried several times is counted each time. This is shown for a day after the last one, unless all have come again.',
      'Polls find the entries of parcels that the relay knows. Parcels that only refused pushes named stay unknown.',
    ],
    todo: [
      'Do you know that the carrier sends refused pushes again until they are taken? Then there is nothing to do.',
      'If not, ask it to send again what got 503 between these times.',
      NEW_PARCELS,
    ],
  }
}

const NEW_PARCELS =
  'If it cannot, ask it for a list of the parcels that are new since then, and watch them: parcel-relay watch --file FILE.'

function explainMisunderstood({ pushes }: Situation): Explanation {
  return {
    title: 'No push is understood',
    sinceMs: noPushSinceMs(pushes),
    evidence: [
      `The carrier has pushed since then, but all of it is in quarantine. Polls found ${countText(pushes.missedSincePush)} entries that no push brought.`,
      UNHEARD_OF,
    ],
    todo: ['See why: parcel-relay inbox --state quarantined.', ...SETTLE_QUARANTINE],
  }
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
  const evidence = [...(words === null ? [] : [failureSentence(words)]), `${waiting} None is lost.`]
  if (kind === 'endpoint_failing')
    return {
      title: `${name} fails`,
      sinceMs: state.health.failingSinceMs,
      evidence,
      todo: [
        remedy === null || words?.change === null ? `${remedy ?? ''} ${look}`.trim() : remedy,
        `When it is mended: parcel-relay endpoints retry ${typed}.`,
      ],
    }
  return {
    title: `${name} ${state.disabled === 'gone' ? 'answered 410 Gone and is disabled' : 'failed for 120 h and is disabled'}`,
    sinceMs: state.disabledSince?.atMs ?? null,
    evidence,
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
        ? `Correct operator.url, ${RELOAD} Or mend what receives its events.`
        : remedySentence(words, { origin: 'operator', name: 'it', typed: '' }),
      disabled === null ? 'Then send a test event: parcel-relay operator test.' : 'Then enable it: parcel-relay operator enable.',
    ],
  }
}

function explainDisk(disk: DiskRoom, sinceMs: number | null): Explanation {
  const { freeBytes, freeBytesMin, totalBytes, storeBytes, path } = disk
  const usedBytes = totalBytes - freeBytes
  const others = bytesText(Math.max(0, usedBytes - storeBytes))
  const usage = `On the disk of ${path} ${bytesText(usedBytes)} of ${bytesText(totalBytes)} are used, ${bytesText(storeBytes)} by the store and ${others} by others.`
  const isFull = isDiskFull(disk)
  return {
    title: isFull ? "The store's disk is full: pushes are refused" : `${bytesText(freeBytes)} are free on the store's disk`,
    sinceMs,
    evidence: [
      isFull
        ? `${bytesText(freeBytes)} are free; the relay needs ${bytesText(freeBytesMin)}. It answers pushes with 503, and does not poll. A carrier gives up sending a push again after some time. With no byte free, events to webhooks wait too.`
        : `Below ${bytesText(freeBytesMin)} pushes are answered with 503. Nothing is lost now.`,
      usage,
    ],
    todo: [
      isFull
        ? `Free ${bytesText(freeBytesMin - freeBytes)} or more on that disk. Do not restart the relay before: without room it does not start. With room it goes on by itself. Then ask the carrier to send again what was refused.`
        : 'Make room on that disk, or ask the people who run the machine to.',
    ],
  }
}
