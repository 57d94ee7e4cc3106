import { endpointOf, type Role } from '../../../core/domain/admin/replica.ts'
import { type Counts, LATENESS_CLASSES, sumOf, totalOf } from '../../../core/domain/admin/tally.ts'
import { counted, countText, spanText } from '../../../core/domain/amounts.ts'
import type { EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { callsText } from '../../../core/domain/polling/call-budget.ts'
import { type CarrierState, carrierStanding, lastFailureText, pauseText } from '../../../core/domain/polling/carrier-answer.ts'
import type { PushChannelView } from '../../../core/domain/polling/poll.ts'
import type { SilenceEvidence } from '../../../core/domain/polling/push-health.ts'
import type { Past, Traffic } from '../../overview/overview.ts'
import { CORRECT_PASSWORD, carrierStateWords, pushStateWords, refusalWords, type StateWords } from '../../problems/explain-problem.ts'
import { describeMisdirected } from '../../problems/explain-pushes.ts'
import {
  areOnlyMisunderstood,
  doPollsReplacePushes,
  misdirectedSincePush,
  noPushSinceMs,
  pushEvidence,
  pushStanding,
  type Situation,
} from '../../problems/verdict.ts'
import { axis, bars, budgetBar, swatch, TAKEN } from '../charts.ts'
import { html, link, type Markup, type Part } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import { asOfLine, headline, type StateKind, sentenceOnPage, settingsList, stateMark, table, wordsOnPage } from '../parts.ts'
import { fullTime, hourBegun, relativeTime, timeInSentence } from '../times.ts'

/** Shows a state as its words with a mark. */
export function markOf({ tone, words }: StateWords): Markup {
  return stateMark(tone, words)
}

/** Renders the page about the carrier: its pushes, its answers, and the calls that were made. */
export function carrierPage(visit: Visit, situation: Situation & Past): string {
  const { carrier, pushes, replicas, counts, endpoints, traffic } = situation
  const { nowMs, to } = visit
  const main = html`${headline({ title: 'Carrier', lead: leadOf(situation, nowMs), asOf: asOfLine(nowMs, to`/carrier`) })}
${table({
  label: 'Connection',
  columns: ['What', 'State', 'Evidence'],
  rows: [
    ['Pushes', markOf(pushStateWords(situation)), wordsOnPage(pushEvidence(pushes, nowMs, doPollsReplacePushes(situation)), nowMs)],
    ['Answers', markOf(carrierStateWords(situation)), answerEvidence(carrier, nowMs)],
    ['Token', tokenMark(carrier), tokenEvidence(carrier, nowMs)],
    ['Breaker', stateMark(carrier.breaker.state === 'closed' ? 'ok' : 'bad', carrier.breaker.state), breakerEvidence(carrier)],
    [
      'Budget',
      budgetMark(carrier),
      html`${callsText(carrier.budget)}. ${countText(carrier.budget.inFlight)} under way, ${countText(carrier.budget.waiting)} wait.`,
    ],
  ],
})}
${spendingSection(traffic.calls, carrier.budget.callsPerDay, nowMs)}
<h2 id="pushes">Pushes: the evidence</h2>
${pushHours(traffic)}
${settingsList([
  ['Last push', lastPush(pushes, nowMs)],
  ...(pushes.silence === null ? [] : [['Noticed', noticedText(pushes.silence, nowMs)] as const]),
  ...misdirectedSincePush(situation).map((one) => ['Wrong path', describeMisdirected(one, situation.webhook.path)] as const),
  ['Missed since then', countText(pushes.missedSincePush)],
  ['Missed in all', missedText(pushes, nowMs)],
  ...(pushes.silence === null
    ? [['Lost', `${percentText(pushes.loss)} of pushes (estimate)`] as const]
    : [['Lost before that', `${percentText(pushes.silence.loss)} of pushes (estimate)`] as const]),
  ...(pushes.health === 'silent'
    ? [['What changes', 'Polls are at their full rate again, until pushes have come for 30 min.'] as const]
    : []),
])}
${latenessTable(traffic)}
<p>${link(to`/inbox/refusals`, 'Pushes with refused signatures, and why')} · ${link(to`/report`, 'The report, month by month')}</p>
<h2 id="due">Due</h2>
<p>${counted(counts.watched, 'parcel is checked', 'parcels are checked')}, ${counted(counts.overdue, 'is', 'are')} due now. ${link(to`/parcels`, 'All parcels, next check first')}</p>
<h2 id="replicas">Replicas</h2>
${table({
  label: 'Replicas',
  columns: ['Replica', 'Seen', 'Does', 'Up', 'Version', 'Settings'],
  rows: replicas.map(({ name, lastSeenAtMs, roles, startedAtMs, version, configFingerprint }) => [
    name,
    relativeTime(lastSeenAtMs, nowMs),
    dutiesOf(roles, endpoints),
    spanText(nowMs - startedAtMs),
    version,
    html`<code>${configFingerprint.slice(0, 12)}</code>`,
  ]),
})}`
  const title =
    carrier.credentials === 'refused'
      ? 'Password refused · Carrier'
      : pushes.health === 'silent'
        ? 'Pushes are silent · Carrier'
        : 'Carrier'
  return renderPage(visit, 'carrier', title, main)
}

/** Describes the work of a replica, apart from taking pushes and answering apps, which all replicas do. */
function dutiesOf(roles: readonly Role[], endpoints: readonly EndpointState[]): string {
  const names = new Map(endpoints.map(({ endpoint: { id, name } }) => [id, name]))
  const served = roles.flatMap((role) => names.get(endpointOf(role) ?? '') ?? [])
  const duties = [
    ...(roles.includes('poller') ? ['polls'] : []),
    ...(roles.includes('janitor') ? ['works on jobs'] : []),
    ...(served.length === 0 ? [] : [`delivers to ${served.length > 5 ? `${served.length} webhooks` : served.join(', ')}`]),
  ]
  return duties.length === 0 ? 'takes pushes and answers apps' : duties.join('; ')
}

function lastPush({ lastPushAtMs, restoredAtMs }: PushChannelView, nowMs: number): Part {
  const last = lastPushAtMs === null ? 'none yet' : html`${fullTime(lastPushAtMs, nowMs)}, with news`
  return restoredAtMs === null ? last : html`${last}, as far as the restored backup knows`
}

function leadOf(situation: Situation, nowMs: number): Part {
  const { carrier, pushes } = situation
  const sinceMs = noPushSinceMs(pushes)
  const since = sinceMs === null ? null : html` since ${timeInSentence(sinceMs, nowMs)}`
  const standing = carrierStanding(carrier)
  if (standing.kind === 'refused') return html`<span class="bad-text">It refuses our password.</span>`
  if (situation.notReady.length > 0)
    return html`<span class="bad-text">The relay is not ready</span>: it refuses pushes and does not poll until it is.`
  if (standing.kind === 'failing') {
    return pushes.health === 'silent'
      ? html`<span class="bad-text">The relay has learned nothing${since}: the carrier neither answers nor pushes.</span>`
      : html`<span class="bad-text">It fails to answer our calls.</span>`
  }
  if (areOnlyMisunderstood(situation))
    return html`It answers our calls, <span class="bad-text">but the relay understands none of its pushes${since}</span>.`
  if (pushes.health === 'silent') return html`It answers our calls, <span class="bad-text">but pushes nothing${since}</span>.`
  if (standing.kind === 'troubled')
    return html`The last call failed: ${carrier.lastFailure === null ? standing.reason : lastFailureText(carrier.lastFailure)}.`
  const ofPushes = pushStanding(pushes)
  if (ofPushes === 'resumed' && pushes.probation !== null)
    return html`It answers our calls, and <span class="warn-text">its pushes arrive again since ${timeInSentence(pushes.probation.sinceMs, nowMs)}</span>.`
  if (ofPushes === 'not_understood')
    return html`It answers our calls. <span class="warn-text">Many of its pushes are not understood</span>.`
  if (ofPushes === 'lossy')
    return html`It answers our calls. <span class="warn-text">Many of its pushes are lost</span>: polls find those of parcels that the relay knows.`
  return standing.kind === 'unasked'
    ? 'It has not been asked about a parcel since the relay started.'
    : html`It answered our last call${carrier.lastAnswerAtMs === null ? null : html`, ${relativeTime(carrier.lastAnswerAtMs, nowMs)}`}.`
}

function answerEvidence({ credentials, lastAnswerAtMs, lastFailure }: CarrierState, nowMs: number): Part {
  if (credentials === 'refused') return 'The relay makes no calls. Apps are answered from the store; a parcel we do not know gets 503.'
  const last = lastAnswerAtMs === null ? 'None since the relay started.' : html`The last one came ${relativeTime(lastAnswerAtMs, nowMs)}.`
  return lastFailure === null
    ? last
    : html`${last} The last failure: ${lastFailureText(lastFailure)}${lastFailure.said === undefined ? null : html` <q class="said">${lastFailure.said}</q>`}, ${relativeTime(lastFailure.atMs, nowMs)}.`
}

function tokenMark({ credentials }: CarrierState): Markup {
  const marks: Readonly<Record<CarrierState['credentials'], readonly [StateKind, string]>> = {
    unknown: ['none', 'not obtained yet'],
    obtained: ['ok', 'obtained'],
    accepted: ['ok', 'accepted'],
    refused: ['bad', 'refused'],
  }
  return stateMark(...marks[credentials])
}

function tokenEvidence(carrier: CarrierState, nowMs: number): Part {
  if (carrier.credentials === 'refused')
    return html`${carrier.refusal === null ? null : sentenceOnPage(refusalWords(carrier.refusal, nowMs), nowMs)} ${sentenceOnPage(CORRECT_PASSWORD, nowMs)}`
  if (carrier.credentials === 'obtained')
    return 'The carrier’s login took the user name and password. No call with its token has been answered yet.'
  return 'The carrier’s own login, with the user name and password of upstream.'
}

function breakerEvidence({ breaker }: CarrierState): string {
  if (breaker.state === 'closed')
    return breaker.failures === 0 ? 'Calls do not pause.' : `${countText(breaker.failures)} failures in a row.`
  const tried =
    breaker.failures === 0 ? '' : `${counted(breaker.failures, 'question', 'questions')} in a row had no answer since the relay started. `
  return `${tried}${pauseText(breaker)}`
}

function budgetMark({ budget: { callsToday, callsPerDay } }: CarrierState): Markup {
  return callsToday >= callsPerDay ? stateMark('bad', 'used up') : stateMark('ok', 'enough')
}

function noticedText({ noticedAtMs, found }: SilenceEvidence, nowMs: number): Part {
  return html`${timeInSentence(noticedAtMs, nowMs)}, when ${counted(found, 'entry', 'entries')} had no push. The chance of this, if pushes worked, is less than 1 in 10,000.`
}

function percentText(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function missedText({ missed }: PushChannelView, nowMs: number): Part {
  if (missed.lastFoundAtMs === null) return countText(missed.count)
  return html`${countText(missed.count)}, the last one counted ${relativeTime(missed.lastFoundAtMs, nowMs)}`
}

const DAY_MS = 24 * 3_600_000
const APPS_SHOWN = 5

/** Shows what today's calls to the carrier were made for: a bar, and a table below it. `calls`: counts by purpose, such as `schedule`. */
function spendingSection(calls: Counts, callsPerDay: number, nowMs: number): Markup {
  const apps = Object.entries(calls)
    .filter(([name]) => name.startsWith('app:'))
    .toSorted(([, a], [, b]) => b - a)
  const of = (name: string) => calls[name] ?? 0
  const spenders: readonly (readonly [name: string, count: number, ofThese: string])[] = [
    ['Schedule', of('schedule') + of('watchdog'), `scheduled polls, ${countText(of('watchdog'))} for watchdogs`],
    [
      'Apps’ questions',
      apps.reduce((sum, [, count]) => sum + count, 0),
      apps.length === 0
        ? 'questions that the store could not answer'
        : apps
            .slice(0, APPS_SHOWN)
            .map(([name, count]) => `${name.slice('app:'.length)} ${countText(count)}`)
            .join(' · '),
    ],
    ['Further languages', of('language'), 'texts missing from entries'],
    ['Operators', of('operator'), 'refresh, check'],
    ['Token and repeats', of('token') + of('repeat'), `${countText(of('token'))} for tokens, ${countText(of('repeat'))} repeats`],
  ]
  const all = totalOf(calls)
  const share = (nowMs % DAY_MS) / DAY_MS
  return html`<h2 id="budget">Calls today</h2>
${budgetBar(
  spenders.map(([, count]) => count),
  { of: callsPerDay, share, summary: `${countText(all)} of ${countText(callsPerDay)} calls used` },
)}
<p class="dim">The whole bar is ${countText(callsPerDay)} calls. The line marks the time: ${Math.floor(share * 100)} % of the day is over, which ends at ${timeInSentence(Math.ceil((nowMs + 1) / DAY_MS) * DAY_MS, nowMs)}.</p>
${table({
  label: 'Who spends the calls',
  kind: 'cards tight',
  columns: ['For', { number: 'Calls' }, { number: 'Share' }, 'Of these'],
  rows: spenders.map(([name, count, ofThese], part) => [
    html`${swatch(part)}${name}`,
    countText(count),
    `${((100 * count) / Math.max(1, all)).toFixed(1)} %`,
    ofThese,
  ]),
})}`
}

const LATENESS_NAMES: Readonly<Record<string, string>> = {
  '1m': 'within a minute',
  '5m': 'within 5 min',
  '15m': 'within 15 min',
  '1h': 'within an hour',
  '4h': 'within 4 h',
  '1d': 'within a day',
  later: 'later',
}

/** Draws the pushes and the missed pushes of each hour. */
function pushHours({ hours }: Traffic): Markup {
  const pushes = hours.pushes.map((counts) => totalOf(counts, TAKEN))
  const missed = hours.missed.map((counts) => totalOf(counts))
  const sum = (counts: readonly number[]) => countText(counts.reduce((all, one) => all + one, 0))
  const names = [0, 8, 16].map((at) => hourBegun(hours.fromMs[at] ?? 0))
  return html`<p>Pushes that were taken, hour by hour (blue), and entries that only polls found (amber).</p>
${bars({ values: pushes, over: missed, overKind: 'warn', size: 'strip', summary: `Last 24 hours: ${sum(pushes)} pushes, ${sum(missed)} missed` })}
${axis([...names, 'now'])}`
}

/** Shows how long after the scan a poll found each missed push. */
function latenessTable({ days }: Traffic): Markup {
  const late = sumOf(days.missed.map((counts) => ({ counts })))
  return table({
    label: 'How late missed pushes were found, last 30 days',
    kind: 'cards tight slim',
    columns: ['Found by a poll', { number: 'Missed pushes, last 30 days' }],
    rows: LATENESS_CLASSES.map((name) => [LATENESS_NAMES[name] ?? name, countText(late[name] ?? 0)]),
  })
}
