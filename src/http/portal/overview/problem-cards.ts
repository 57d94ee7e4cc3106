import { refusesFromMs } from '../../../domain/admin/disk-room.ts'
import { explainProblem } from '../../../domain/admin/problems/explain-problem.ts'
import { areOnlyMisunderstood, isWarning, type Problem, type Situation } from '../../../domain/admin/problems/verdict.ts'
import { counted } from '../../../domain/amounts.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { type Past, SHOWN } from '../../../flow/admin/overview/overview.ts'
import { buttonLink, link, withQuery } from '../addresses.ts'
import { runbookLink } from '../docs/runbooks.ts'
import { html, type Markup, type Part } from '../html.ts'
import type { Visit } from '../page-route.ts'
import { actionButton, icon } from '../parts.ts'
import { timeInSentence } from '../times.ts'
import { sentenceOnPage } from '../words.ts'

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

/** The kinds of problems whose runbooks help. */
function runbooksOf({ kind }: Problem, situation: Situation): readonly Problem['kind'][] {
  return kind === 'pushes_silent' && areOnlyMisunderstood(situation) ? ['pushes_silent', 'quarantined'] : [kind]
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
