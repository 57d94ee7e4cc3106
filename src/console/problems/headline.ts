import { counted, countText, spanText } from '../../core/domain/amounts.ts'
import { FAILURES_TO_OPEN } from '../../core/domain/polling/breaker.ts'
import {
  type CarrierState,
  carrierStanding,
  isOfAll,
  lacksAnswer,
  lastFailureText,
  type UnavailableReason,
} from '../../core/domain/polling/carrier-answer.ts'
import type { RefusedCause } from '../refused/refused-pushes.rules.ts'
import { spellText, wholeSpell } from './explain-pushes.ts'
import { doPollsReplacePushes, isNew, type Problem, pushEvidence, pushStanding, type Situation, type Stalled } from './verdict.ts'
import { plainText } from './words.ts'

const HOUR_MS = 3_600_000

/** The verdict on the relay in one line. */
export interface Headline {
  readonly verdict: 'works' | 'new' | 'problems'
  /** The line, without a full stop. */
  readonly text: string
  /** Sentences about trouble that is no problem yet. If there are no problems, `text` mentions such trouble unless it seems to be over. */
  readonly caveats: readonly string[]
}

interface Caveat {
  /** A clause that follows the word "but"; null: the trouble seems to be over, so the headline does not mention it. */
  readonly clause: string | null
  readonly sentence: string
}

/** The line must not contradict the details that are shown below it. */
export function headlineOf(situation: Situation, problems: readonly Problem[], nowMs: number): Headline {
  const found = [...ofCarrier(situation, nowMs), ...ofPushes(situation, nowMs), ...ofRefused(situation, nowMs)]
  const caveats = found.map(({ sentence }) => sentence)
  if (problems.length > 0) return { verdict: 'problems', text: counted(problems.length, 'problem', 'problems'), caveats }
  const clauses = found.flatMap(({ clause }) => clause ?? [])
  const but = clauses.length === 0 ? '' : `, but ${clauses.join(', and ')}`
  const stalled = stalledText(situation.stalled)
  if (isNew(situation)) return { verdict: 'new', text: `Ready: waiting for the first push${but}${stalled}`, caveats }
  const unproven = withoutEvidence(situation)
  if (unproven.length === 0) return { verdict: 'works', text: `Everything works${but}${stalled}`, caveats }
  const text = `No trouble seen; ${counted(unproven.length, 'check has', 'checks have')} no evidence yet${but}${stalled}`
  const more = unproven.length <= NAMED_MAX ? '' : ` and ${counted(unproven.length - NAMED_MAX, 'more', 'more')}`
  return { verdict: 'works', text, caveats: [`No evidence yet: ${unproven.slice(0, NAMED_MAX).join(', ')}${more}.`, ...caveats] }
}

/** Stalled parcels are no trouble of the relay, but who reads that it works should not miss them. */
function stalledText(stalled: Stalled | null): string {
  if (stalled === null || stalled.parcels === 0) return ''
  return `; ${stalled.isAll ? '' : 'at least '}${counted(stalled.parcels, 'parcel is', 'parcels are')} stalled`
}

/** So many checks without evidence are named. */
const NAMED_MAX = 5

/** Names what nothing has shown to work: silence is no evidence. */
function withoutEvidence({ pushes, carrier, endpoints }: Situation): readonly string[] {
  const standing = pushStanding(pushes)
  const untried = endpoints.filter(({ disabled, health }) => disabled === null && health.lastSuccessAtMs === null)
  return [
    ...(standing === 'none'
      ? ['no push with news has come']
      : standing === 'too_early'
        ? ['it is too early to know whether pushes are lost']
        : []),
    ...(carrier.lastAnswerAtMs === null ? ['the carrier has answered no question since the relay started'] : []),
    ...untried.map(({ endpoint }) => `${endpoint.name} has accepted nothing`),
  ]
}

function ofCarrier({ carrier }: Situation, nowMs: number): readonly Caveat[] {
  const standing = carrierStanding(carrier)
  const { lastFailure } = carrier
  if (standing.kind !== 'troubled' || lastFailure === null) return []
  const ago = `${spanText(Math.max(0, nowMs - lastFailure.atMs))} ago`
  const sentence = `The last call to the carrier failed ${ago}: ${lastFailureText(lastFailure)}.${inARow(carrier.breaker)}${outlook(standing.reason, carrier.breaker.failures)}`
  const clause = standing.reason === 'rate_limited' ? 'the carrier asks for fewer calls' : 'the last call to the carrier failed'
  return [{ clause, sentence }]
}

function inARow({ unanswered }: CarrierState['breaker']): string {
  if (unanswered === undefined || unanswered.count < 2) return ''
  return ` ${countText(unanswered.count)} questions in a row had no answer (what is repeated with a new token counts once), since ${new Date(unanswered.sinceMs).toISOString()}.`
}

/** Says when failures become a problem; empty: the circuit breaker does not count failures with this reason, or has counted none. */
function outlook(reason: UnavailableReason, failures: number): string {
  if (lacksAnswer(reason) === 'refusal')
    return ' It becomes a problem if no question is answered for 15 minutes, or 20 in a row are not, over five parcels.'
  if (isOfAll(reason) || failures === 0) return ''
  return ` It becomes a problem after ${FAILURES_TO_OPEN} failures in a row; ${failures} so far.`
}

/** Finds trouble with pushes that is no problem yet. Lost pushes and a silence of pushes are problems, so they are not found here. */
function ofPushes(situation: Situation, nowMs: number): readonly Caveat[] {
  const { pushes } = situation
  const standing = pushStanding(pushes)
  if (standing !== 'resumed' && standing !== 'not_understood') return []
  const sentence = plainText(pushEvidence(pushes, nowMs, doPollsReplacePushes(situation)))
  return [{ clause: standing === 'resumed' ? 'pushes have just recovered' : 'many pushes are not understood', sentence }]
}

/** The words for each cause of refused pushes (`BE`: was or were, by their number). They are caveats and not problems, because any stranger can send a push that is refused. */
const REFUSED: Readonly<Record<Exclude<RefusedCause, 'not_stored'>, readonly [clause: string, why: string, todo: string]>> = {
  overload: [
    'pushes were refused because too many came at once',
    'BE refused with 503, because too many bytes came at once (limits.bodyBytesInFlight)',
    'Anybody can send so much. If they were the carrier’s, ask it whether it sends refused pushes again.',
  ],
  signature: [
    'pushes were refused for their signature',
    'BE refused with 401, because their signature does not match',
    'Anybody can send such pushes; parcel-relay inbox --refused shows who did, and why they do not match. If they were the carrier’s, mend the cause, and ask it to send them again.',
  ],
  path: [
    'pushes came to a wrong path',
    'came with a signature to another path than webhook.path, and got 404',
    'If they were the carrier’s, ask it to correct the address and to send them again.',
  ],
  size: [
    'pushes were too large',
    'BE larger than webhook.bodyBytesMax, and got 413',
    'If they were the carrier’s, raise that, restart, and ask it to send them again.',
  ],
}

/**
 * Returns one caveat for each cause, so that a stranger who sends many such pushes does not fill the list. A cause leaves the headline an hour
 * after its last push if a later push was understood. Without this rule, one push of a stranger would stay in the headline for a day.
 */
function ofRefused({ refused, pushes: { lastPushAtMs } }: Situation, nowMs: number): readonly Caveat[] {
  return [...Map.groupBy(refused, ({ cause }) => cause)].flatMap(([cause, spells]) => {
    if (cause === 'not_stored') return []
    const [clause, why, todo] = REFUSED[cause]
    const whole = wholeSpell(spells)
    const isOver = nowMs - whole.untilMs >= HOUR_MS && lastPushAtMs !== null && lastPushAtMs > whole.untilMs
    return [
      { clause: isOver ? null : clause, sentence: `${spellText(whole)} ${why.replace('BE', whole.count === 1 ? 'was' : 'were')}. ${todo}` },
    ]
  })
}
