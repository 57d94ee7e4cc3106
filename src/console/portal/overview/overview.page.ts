import { isDiskFull, isDiskLow, refusesFromMs } from '../../../core/domain/admin/disk-room.ts'
import { bytesText, counted, countText } from '../../../core/domain/amounts.ts'
import { conditionOf, type EndpointCondition, type EndpointState } from '../../../core/domain/delivery/endpoint-state.ts'
import { callsText } from '../../../core/domain/polling/call-budget.ts'
import type { OperatorEventTable } from '../../events/operator-events.ts'
import { type Past, SHOWN } from '../../overview/overview.ts'
import type { Runbook } from '../../problems/concern-kinds.ts'
import { carrierStateWords, explainProblem, pushStateWords } from '../../problems/explain-problem.ts'
import { comebackText, spellText, wholeSpell } from '../../problems/explain-pushes.ts'
import { headlineOf } from '../../problems/headline.ts'
import {
  areOnlyMisunderstood,
  doPollsReplacePushes,
  isNew,
  isWarning,
  lastPushWords,
  type Problem,
  problemsOf,
  pushEvidence,
  type Situation,
} from '../../problems/verdict.ts'
import { hasAllComeAgain } from '../../refused/refused-pushes.rules.ts'
import { markOf } from '../carrier/carrier.page.ts'
import { trafficSection } from '../charts.ts'
import { RUNBOOKS, runbookLink, runbookOf } from '../docs/manual.ts'
import { buttonLink, html, link, type Markup, type Part, withQuery } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import { actionButton, asOfLine, eventTable, headline, icon, island, sentenceOnPage, stateMark, table, wordsOnPage } from '../parts.ts'
import { relativeTime, timeInSentence } from '../times.ts'

/** The page says whether everything works and, if not, what is wrong, since when, and who must do what. */
export function overviewPage(visit: Visit, situation: Situation & Past, wordEvent: OperatorEventTable['word']): string {
  const { nowMs, to, person } = visit
  const problems = problemsOf(situation)
  const { verdict, text: title, caveats } = headlineOf(situation, problems, nowMs)
  const mark =
    verdict === 'problems'
      ? icon('bad', 'bad')
      : caveats.length > 0
        ? icon('warn', 'warn')
        : verdict === 'new'
          ? icon('none')
          : icon('ok', 'ok')
  const also = caveats.map((sentence) => html`${sentenceOnPage(sentence, nowMs)} `)
  const main = html`${headline({ title: html`${mark}${title}`, lead: problems.length > 0 ? leadOf(situation, problems, nowMs) : html`${also}${leadOf(situation, problems, nowMs)}`, asOf: asOfLine(nowMs, to`/`, true), isLive: true })}
${island('problems', html`${problemSections(visit, situation, problems)}${problems.length === 0 || also.length === 0 ? null : html`<p>Also: ${also}</p>`}`)}
${island(
  'checks',
  html`<h2>${problems.length === 0 ? 'Checks' : 'What works, and what can wait'}</h2>
${checks(visit, situation)}`,
)}
${trafficSection(situation.traffic)}
<h2>What happened</h2>
${island('happened', eventTable(situation.happened, nowMs, wordEvent))}
${person.scope === 'admin' && situation.happened.length > 0 ? html`<p>${link(to`/events`, 'All that happened')}</p>` : null}`
  return renderPage(visit, 'overview', `${title} · Overview`, main)
}

function leadOf(situation: Situation, problems: readonly Problem[], nowMs: number): Part {
  const { pushes, carrier, notReady } = situation
  if (notReady.length > 0) return 'Pushes are answered with 503. The carrier sends them again for some time.'
  if (pushes.health === 'silent' && !doPollsReplacePushes(situation))
    return 'The relay learns nothing new: no push comes, and the carrier cannot be asked. The relay finds the missed entries once it can ask again.'
  if (problems.length > 0) {
    if (!doPollsReplacePushes(situation))
      return 'Pushes are still taken and sent on. What no push brings is found once the carrier can be asked again.'
    return problems.some(({ kind }) => LACKS_PUSHES.includes(kind))
      ? 'Polls find what no push brings, but only for parcels that the relay knows. Events that a webhook refuses wait for it.'
      : 'Nothing is lost: polls find what no push brings, and events that a webhook refuses wait for it.'
  }
  if (isNew(situation)) return 'The relay is ready. It knows no parcel yet.'
  return html`${wordsOnPage(lastPushWords(pushes, nowMs), nowMs)} ${
    carrier.lastAnswerAtMs === null ? null : html`The carrier answered ${relativeTime(carrier.lastAnswerAtMs, nowMs)}.`
  }`
}

/** The problems during which the relay may miss pushes about parcels that it does not know. Polls find only entries of known parcels. */
const LACKS_PUSHES: readonly Problem['kind'][] = ['pushes_silent', 'pushes_lossy', 'silence_over', 'pushes_refused', 'quarantined']

function checks({ to, person, nowMs }: Visit, situation: Situation): Markup {
  const { carrier, pushes, endpoints, counts, disk, replicas } = situation
  const isAdmin = person.scope === 'admin'
  const count = (condition: EndpointCondition) => endpoints.filter((one) => conditionOf(one) === condition).length
  const [delivering, untried, disabled, failing] = [count('delivering'), count('untried'), count('disabled'), count('failing')]
  return table({
    label: 'Checks',
    columns: ['Check', 'State', 'Evidence'],
    rows: [
      ['Pushes', markOf(pushStateWords(situation)), wordsOnPage(pushEvidence(pushes, nowMs, doPollsReplacePushes(situation)), nowMs)],
      ...comebackRow(situation),
      [
        'Carrier',
        markOf(carrierStateWords(situation)),
        html`${callsText(carrier.budget)}.${isAdmin ? html` ${link(to`/carrier`, 'Carrier')}` : null}`,
      ],
      [
        'Webhooks',
        failing > 0
          ? stateMark('bad', `${failing} failing`)
          : endpoints.length === 0
            ? stateMark('none', 'none yet')
            : delivering === 0 && untried > 0
              ? stateMark('none', `${untried} untried`)
              : stateMark('ok', `${delivering} deliver`),
        html`${untried === 0 ? null : `${counted(untried, 'has', 'have')} accepted nothing yet. `}${disabled === 0 ? 'None is disabled.' : `${countText(disabled)} disabled.`}${isAdmin ? html` ${link(to`/webhooks`, 'Webhooks')}` : null}`,
      ],
      [
        'Inbox',
        counts.quarantined === 0 ? stateMark('ok', 'all understood') : stateMark('warn', `${countText(counts.quarantined)} quarantined`),
        counts.quarantined === 0
          ? 'No push is in quarantine.'
          : 'These pushes are signed by the carrier, but the relay does not understand them. They are kept.',
      ],
      [
        'Parcels',
        stateMark(counts.parcels === 0 ? 'none' : 'ok', `${countText(counts.parcels)} known`),
        html`${counted(counts.watched, 'is', 'are')} checked, ${counted(counts.overdue, 'is', 'are')} due now.${counts.unknown === 0 ? null : html` ${link(withQuery(to`/parcels`, { stopped: 'unknown' }), `${countText(counts.unknown)} given up as unknown to the carrier`)}.`} ${link(to`/parcels`, 'Parcels')}`,
      ],
      ...watchdogRow({ to, person }, situation),
      ...(disk === null
        ? []
        : [
            [
              'Disk',
              isDiskFull(disk) ? stateMark('bad', 'full') : isDiskLow(disk) ? stateMark('warn', 'low') : stateMark('ok', 'has room'),
              `${bytesText(disk.freeBytes)} are free. The store takes ${bytesText(disk.storeBytes)}.`,
            ],
          ]),
      ['Replicas', stateMark('ok', countText(replicas.length)), replicas.map(({ name }) => name).join(', ')],
    ].map((row) => [...row]),
  })
}

function watchdogRow({ to, person }: Pick<Visit, 'to' | 'person'>, { stalled }: Situation): readonly (readonly Part[])[] {
  if (stalled === null) return []
  const { parcels, isAll } = stalled
  const mark =
    parcels === 0 ? stateMark('ok', 'none stalled') : stateMark('warn', `${isAll ? '' : 'at least '}${countText(parcels)} stalled`)
  const lead = person.scope === 'admin' ? html` ${link(to`/watchdogs`, 'Watchdogs')}` : null
  return [
    [
      'Watchdogs',
      mark,
      html`${parcels === 0 ? 'No rule finds a parcel stalled.' : 'Your rules find them so; the relay is not at fault.'}${lead}`,
    ],
  ]
}

/** Refused pushes that have all come again are no problem, but people who saw the refusal want to know. */
function comebackRow({ refused }: Situation): readonly (readonly Part[])[] {
  const notStored = refused.filter(({ cause }) => cause === 'not_stored')
  const words = comebackText(notStored)
  return words === null || !hasAllComeAgain(notStored)
    ? []
    : [['Refused pushes', stateMark('ok', 'came again'), `${spellText(wholeSpell(notStored))} got 503. ${words}`]]
}

/** How many webhooks in trouble get a card. One line counts the others. The overview reads the backlogs of only this many webhooks. */
const EXPLAINED = SHOWN.backlogs

export function problemSections(visit: Visit, situation: Situation & Past, problems: readonly Problem[]): Markup {
  const ofWebhooks = problems.filter((problem) => 'state' in problem)
  const beyond = new Set<Problem>(ofWebhooks.slice(EXPLAINED))
  const { to, person } = visit
  const more = `${counted(beyond.size, 'more webhook is', 'more webhooks are')} in trouble.`
  return html`${problems.filter((problem) => !beyond.has(problem)).map((problem, at) => problemSection(visit, situation, problem, at))}${
    beyond.size === 0
      ? null
      : html`<p>${more}${person.scope === 'admin' ? html` ${link(to`/webhooks`, 'All webhooks, trouble first')}` : null}</p>`
  }`
}

function problemSection(visit: Visit, situation: Situation & Past, problem: Problem, at: number): Markup {
  const { nowMs, to, person } = visit
  const { title, sinceMs, evidence, todo } = explainProblem(problem, situation, nowMs)
  const kind = isWarning(problem) ? 'warn' : 'bad'
  const acts = person.scope === 'admin' ? actsOf(visit, situation, problem) : null
  return html`<section class="problem ${kind === 'warn' ? 'warn' : ''}" aria-labelledby="problem-${at}">
<h2 id="problem-${at}">${icon(kind, kind)}${title}${smallPrint(situation, problem, sinceMs, nowMs)}</h2>
<div>${evidence.map((sentence) => html`<p>${sentenceOnPage(sentence, nowMs)}</p>`)}${acts === null ? null : html`<div class="acts">${acts}</div>`}</div>
<div><ol>${todo.map((step) => html`<li>${sentenceOnPage(step, nowMs)}</li>`)}</ol>${runbooksOf(problem, situation).map((of) => runbookLink(to, of))}</div>
</section>
`
}

function smallPrint({ traffic }: Past, problem: Problem, sinceMs: number | null, nowMs: number): Part {
  if (problem.kind === 'disk_low') {
    const atMs = refusesFromMs(problem.disk, traffic.disk, nowMs)
    if (atMs !== null) return html` <small>pushes stop at about ${timeInSentence(atMs, nowMs)}, if it goes on like today</small>`
  }
  return sinceMs === null ? null : html` <small>since ${timeInSentence(sinceMs, nowMs)}</small>`
}

/** The runbooks that help. */
function runbooksOf(problem: Problem, situation: Situation): readonly Runbook[] {
  const isMisread = problem.kind === 'pushes_silent' && areOnlyMisunderstood(situation)
  return [runbookOf(problem), ...(isMisread ? [RUNBOOKS.quarantined] : [])]
}

/** Buttons for what the steps say, and for more evidence. Null: there are none. */
function actsOf({ to }: Visit, situation: Situation, problem: Problem): Part {
  const { kind } = problem
  if (kind === 'endpoint_failing' || kind === 'endpoint_disabled') return actsOfWebhook({ to }, problem)
  if (kind === 'operator_unheard')
    return html`${problem.state.disabled === null ? null : actionButton(to`/events/enable`, 'Enable it')}${buttonLink(to`/events`, 'What happened')}`
  if (kind === 'backup_failing') return buttonLink(to`/backups`, 'Backups')
  const inbox = buttonLink(to`/inbox`, 'Open the inbox, by reason')
  if (kind === 'quarantined') return inbox
  return kind === 'pushes_silent'
    ? html`${areOnlyMisunderstood(situation) ? inbox : null}${buttonLink(to`/carrier#pushes`, 'Show the evidence')}`
    : null
}

function actsOfWebhook(
  { to }: Pick<Visit, 'to'>,
  { kind, state }: { readonly kind: Problem['kind']; readonly state: EndpointState },
): Markup {
  const { id, name } = state.endpoint
  const retry = kind === 'endpoint_failing' ? actionButton(to`/webhooks/${id}/retry`, 'Retry now', '', {}, `Retry now: ${name}`) : null
  return html`${retry}${buttonLink(to`/webhooks/${id}`, `Open ${name}`)}${buttonLink(withQuery(to`/deliveries`, { endpoint: id }), 'Its deliveries')}`
}
