import { counted, countText, spanText } from '../../core/domain/amounts.ts'
import { reasonText } from '../../core/domain/ingest/fault-in-body.ts'
import type { HeldGroup } from '../../core/domain/ingest/inbox.ts'
import type { MisdirectedPath } from '../../core/domain/ingest/refused-spells.ts'
import { callsText } from '../../core/domain/polling/call-budget.ts'
import type { PastSilence } from '../../core/domain/polling/push-health.ts'
import { hasAllComeAgain, type RefusedPushes } from '../refused/refused-pushes.rules.ts'
import {
  doPollsReplacePushes,
  misdirectedSincePush,
  NOTICED_WITHIN_MS,
  noPushSinceMs,
  type OwnRefusals,
  ownRefusalsOf,
  pushEvidence,
  type Situation,
} from './verdict.ts'
import { agoWord, codeWord, type Sentence, type Word } from './words.ts'

const REASONS_SHOWN = 3

const SETTLE_QUARANTINE = [
  'Ask the carrier whether it has changed its format, and whether it meant to.',
  'If the carrier returns to its old format, fetch the parcels that the pushes name, with parcel-relay inbox --refresh, and dismiss them: parcel-relay inbox --dismiss --state quarantined.',
  'If the new format stays, install a version of the relay that reads it, then reprocess: parcel-relay inbox --reprocess --state quarantined.',
]

export function explainQuarantined(count: number, { held }: Situation, nowMs: number): Explanation {
  return {
    title: `${counted(count, 'push is', 'pushes are')} in quarantine`,
    sinceMs: null,
    evidence: [
      'They are authentic, and the relay does not understand them. They are kept. A parcel that only they name is not polled.',
      ...held.slice(0, REASONS_SHOWN).map((group) => reasonWords(group, nowMs)),
    ],
    todo: ['See why: parcel-relay inbox --state quarantined.', ...SETTLE_QUARANTINE],
  }
}

/** Says what polls found since pushes stopped, and how much they may still ask. Begins within a sentence. */
function foundByPolls({ pushes, carrier }: Situation, nowMs: number): readonly Word[] {
  const { missedSincePush, missed } = pushes
  return [
    `polls found ${countText(missedSincePush)} entries since then that no push brought`,
    ...(missed.lastFoundAtMs === null ? [] : [', the last one counted ', agoWord(missed.lastFoundAtMs, nowMs)]),
    `. They run at their full rate: ${callsText(carrier.budget)}.`,
  ]
}

function reasonWords({ reason, count, last }: HeldGroup, nowMs: number): Sentence {
  return [`${reason === null ? 'expired' : reasonText(reason)}: ${countText(count)}, the last one `, agoWord(last.receivedAtMs, nowMs), '.']
}

/** Tells operators not to wait for polls to find everything. */
const UNHEARD_OF = 'Polls find nothing about parcels that no push has named yet: the relay does not know these parcels.'

/** Requests to a wrong path are the best evidence that the carrier pushes to a wrong address. */
export function describeMisdirected({ path, isSigned, count, firstAtMs }: MisdirectedPath, webhookPath: string): string {
  const unsigned = isSigned ? '' : ', without a signature'
  return `POST ${path}: 404, ${counted(count, 'time', 'times')} since ${timeText(firstAtMs)}${unsigned} (the webhook's path is ${webhookPath}).`
}

const MISDIRECTED_SHOWN = 3

function timeText(atMs: number): string {
  return new Date(atMs).toISOString()
}

export function explainSilence(situation: Situation, nowMs: number): Explanation {
  const { pushes, webhook } = situation
  const misdirected = misdirectedSincePush(situation).slice(0, MISDIRECTED_SHOWN)
  return {
    title: 'No push comes',
    sinceMs: noPushSinceMs(pushes),
    evidence: [
      ['The carrier scans as usual: ', ...foundByPolls(situation, nowMs)],
      ...misdirected.map((one) => describeMisdirected(one, webhook.path)),
      UNHEARD_OF,
    ],
    todo: [
      ...(misdirected.some(({ isSigned }) => isSigned)
        ? [
            [
              'Pushes seem to come to another path: have the carrier push to ',
              codeWord(`https://YOUR-HOST${webhook.path}`),
              ', or set ',
              codeWord('webhook.path'),
              ' to the path it uses and restart.',
            ],
          ]
        : [
            'Are there refused pushes since then: parcel-relay inbox --refused? Then pushes come, signed with another key than ours or in another way: the list says which.',
            [
              'Ask the carrier to what address it pushes, and what answers it gets. The relay expects ',
              codeWord(`POST https://YOUR-HOST${webhook.path}`),
              ', exactly this path; any other path gets 404.',
            ],
            [
              'From outside your network: ',
              codeWord(`curl -i https://YOUR-HOST${webhook.path}`),
              '. The relay answers a GET with 405. After any other answer look at DNS, the firewall, the proxy and its certificate.',
            ],
          ]),
      'When pushes come again, ask the carrier to send the missed ones again, or for a list of the parcels that are new since then. The runbook says how to watch these.',
    ],
  }
}

const SPELLS_SHOWN = 3

export function explainLoss(situation: Situation, nowMs: number): Explanation {
  const { pushes, lossySinceMs, refused, missedByHour } = situation
  const own = ownRefusalsOf(refused, missedByHour)
  return {
    title: 'Many pushes are lost',
    sinceMs: lossySinceMs,
    evidence: [
      pushEvidence(pushes, nowMs, doPollsReplacePushes(situation)),
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
  'If there are none, the carrier loses them: send it the report of the month, parcel-relay report, and the times of missed pushes, GET /relay/tallies?kind=missed.',
]

export function explainPastSilence({ fromMs, toMs }: PastSilence): Explanation {
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

export function explainRefused(refused: readonly RefusedPushes[]): Explanation {
  const earlier = refused.slice(SPELLS_SHOWN)
  return {
    title: `Pushes were answered with 503, ${counted(wholeSpell(refused).count, 'time', 'times')}`,
    sinceMs: null,
    evidence: [
      ...refused.slice(0, SPELLS_SHOWN).map((spell) => `${spellText(spell)}.`),
      ...(earlier.length === 0 ? [] : [`Before that ${spellText(wholeSpell(earlier))}.`]),
      ...listOfOne(comebackText(refused)),
      'A push that was tried several times is counted each time. This is shown for a day after the last one, unless all have come again.',
      'Polls find the entries of parcels that the relay knows. Parcels that only refused pushes named stay unknown.',
    ],
    todo: [
      'Do you know that the carrier sends refused pushes again until they are taken? Then there is nothing to do.',
      'If not, ask it to send again what got 503 between these times, and what got no answer while the relay was stopped.',
      NEW_PARCELS,
    ],
  }
}

const NEW_PARCELS =
  'If it cannot, ask it for a list of the parcels that are new since then, and watch them: parcel-relay watch --file FILE.'

export function explainMisunderstood(situation: Situation, nowMs: number): Explanation {
  const { pushes, held } = situation
  const [newest] = held
  return {
    title: 'No push is understood',
    sinceMs: noPushSinceMs(pushes),
    evidence: [
      [
        'The carrier has pushed since then',
        ...(newest === undefined ? [] : [', the last time ', agoWord(newest.last.receivedAtMs, nowMs)]),
        ', but all of it is in quarantine. Meanwhile ',
        ...foundByPolls(situation, nowMs),
      ],
      UNHEARD_OF,
    ],
    todo: [
      'See why: parcel-relay inbox --state quarantined.',
      ...SETTLE_QUARANTINE,
      'If nothing more comes although polls find entries, the pushes have stopped as well.',
    ],
  }
}

/** What is wrong, and what an operator can do. */
export interface Explanation {
  /** One line without a full stop. */
  readonly title: string
  /** When the problem began, epoch milliseconds; null: not known. */
  readonly sinceMs: number | null
  readonly evidence: readonly Sentence[]
  readonly todo: readonly Sentence[]
}

type Spell = Omit<RefusedPushes, 'cause'>

/** Says how many requests were refused in a period, and when: `355 requests from TIME until TIME`, or `355 requests on 3 occasions between TIME and TIME (the last one from TIME)`. */
export function spellText({ count, fromMs, untilMs, parts }: Spell): string {
  const [from, until] = [Math.floor(fromMs / 1000), Math.ceil(untilMs / 1000)]
  const requests = counted(count, 'request', 'requests')
  if (parts !== undefined)
    return `${requests} on ${parts.count} occasions between ${secondText(from)} and ${secondText(until)} (the last one from ${secondText(Math.floor(parts.lastFromMs / 1000))})`
  return `${requests} ${fromMs === untilMs ? `at ${secondText(from)}` : `from ${secondText(from)} until ${secondText(until)}`}`
}

/** Joins several spells to one that says on how many occasions requests were refused, because none were in the pauses. */
export function wholeSpell(spells: readonly Spell[]): Spell {
  const occasions = spells.reduce((sum, { parts }) => sum + (parts?.count ?? 1), 0)
  const lastFromMs = Math.max(...spells.map(({ fromMs, parts }) => parts?.lastFromMs ?? fromMs))
  return {
    count: spells.reduce((sum, { count }) => sum + count, 0),
    fromMs: Math.min(...spells.map(({ fromMs }) => fromMs)),
    untilMs: Math.max(...spells.map(({ untilMs }) => untilMs)),
    ...(occasions <= 1 ? {} : { parts: { count: occasions, lastFromMs } }),
  }
}

/** Says how many of the refused pushes have come again; null: no push was refused, or the number is not known for every period. */
export function comebackText(spells: readonly RefusedPushes[]): string | null {
  const comebacks = spells.flatMap(({ comeback }) => comeback ?? [])
  const pushes = comebacks.reduce((sum, one) => sum + one.pushes, 0)
  const again = comebacks.reduce((sum, one) => sum + one.again, 0)
  if (pushes === 0 || comebacks.length < spells.length) return null
  if (again >= pushes) return `${counted(pushes, 'push was', 'pushes were')} refused, and all have come again.`
  return `At most ${counted(pushes, 'different push was', 'different pushes were')} refused, and ${again === 0 ? 'none is known to have' : `at least ${countText(again)} ${again > 1 ? 'have' : 'has'}`} come again. After a restart, and at another replica, the relay does not recognize them, and counts them anew.`
}

function secondText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
