import { html, link, type Markup, type Part } from '../../console/portal/html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import { actionButton, asOfLine, crumbs, headline, sentenceOnPage, settingsList, table } from '../../console/portal/parts.ts'
import { timeInSentence } from '../../console/portal/times.ts'
import { explainClock } from '../../console/problems/explain-problem.ts'
import type { ClockDoubt } from '../../core/domain/admin/clock-record.ts'
import { countText, formatDuration } from '../../core/domain/amounts.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { goToJobs } from '../jobs/jobs.page.ts'
import type { RetentionView, WouldGoByStage } from './manage-retention.ts'
import { RETENTION_STAGES, RETENTION_TITLES, type RetentionCounts, type RetentionStage } from './retention.rules.ts'

/** Makes the page about retention: how long data is kept, what the last pass has removed, and a button that starts a pass. */
export function retentionPages({
  manageRetention,
  overview,
}: Pick<UseCases, 'manageRetention'> & { readonly overview: Pick<UseCases['overview'], 'glance'> }): readonly PageRoute[] {
  async function show(visit: Visit, isUnconfirmed = false): Promise<PageAnswer> {
    const [{ clockDoubt }, view, wouldGo] = await Promise.all([overview.glance(), manageRetention.view(), manageRetention.wouldGo()])
    return { page: retentionPage(visit, view, wouldGo, { doubt: clockDoubt, isUnconfirmed }), status: isUnconfirmed ? 409 : 200 }
  }

  return [
    getPage('/retention', (visit) => show(visit)),
    postForm(
      '/retention',
      async (visit) => {
        const { clockDoubt } = await overview.glance()
        if (clockDoubt !== null && visit.form.get('clock') !== 'right') return await show(visit, true)
        await manageRetention.start(visit.by)
        return { goTo: visit.to`/jobs` }
      },
      { again: goToJobs },
    ),
  ]
}

interface ClockDoubted {
  readonly doubt: ClockDoubt | null
  /** Whether somebody has just tried to start a pass without saying that the clock is right. */
  readonly isUnconfirmed: boolean
}

function retentionPage(visit: Visit, view: RetentionView, wouldGo: WouldGoByStage, { doubt, isUnconfirmed }: ClockDoubted): string {
  const { to, nowMs } = visit
  const { rawMs, historyMs, deliveriesMs, feedMs, auditMs, reportsMs, heldMs } = view.retention
  const main = html`${crumbs([to`/settings`, 'Settings'])}
${headline({ title: 'Retention', lead: leadOf(view, nowMs), asOf: asOfLine(nowMs, to`/retention`) })}
${settingsList([
  ['Bytes of pushes and answers', formatDuration(rawMs)],
  ['Parcels, after their last entry, watch order and question of an app', formatDuration(historyMs)],
  ['Deliveries that have ended', formatDuration(deliveriesMs)],
  ['The feed', formatDuration(feedMs)],
  ['The audit trail and operator events', formatDuration(auditMs)],
  ['The counts of the carrier’s reports', formatDuration(reportsMs)],
  ['What is undelivered, in quarantine or still needed', formatDuration(heldMs)],
])}
${countTable(view, wouldGo)}
${doubt === null ? html`<p>${actionButton(to`/retention`, 'Start a pass now')}</p>` : doubtedStart(visit, doubt, isUnconfirmed)}`
  return renderPage(visit, 'settings', 'Retention', main)
}

/** Says why the clock is doubted. Only if it jumped can a person know that it is right; while clocks contradict each other, no pass removes anything. */
function doubtedStart({ to, nowMs }: Visit, doubt: ClockDoubt, isUnconfirmed: boolean): Markup {
  const { title, evidence } = explainClock(doubt)
  const why = html`<p><strong>${isUnconfirmed ? 'Nothing was started. ' : null}${title}.</strong> ${evidence.slice(0, 1).map((sentence) => sentenceOnPage(sentence, nowMs))}</p>`
  if (doubt.because !== 'jumped')
    return html`<div class="note warn" role="alert">${why}<p>A pass would remove nothing until the clocks agree. ${link(to`/`, 'The overview says what to do')}.</p></div>`
  return html`<form class="note warn" method="post" action="${to`/retention`.path}">${why}
<p>A pass removes for good what is too old by this clock. If the clock is ahead, that is data which you still need.</p>
<div class="pick"><input type="checkbox" id="clock" name="clock" value="right" required><label for="clock">The clock is right</label></div>
<p><button class="btn danger" type="submit">Start a pass now</button></p></form>`
}

function leadOf({ pass, last }: RetentionView, nowMs: number): Part {
  if (pass !== null) return html`A pass has been under way since ${timeInSentence(pass.startedAtMs, nowMs)}.`
  if (last === null) return 'No pass has ended yet. One runs every hour.'
  if (last.isClockDoubted)
    return 'The clock was doubted, so nothing was removed. The overview says why. If it jumped ahead and is right, start a pass here.'
  const held =
    last.heldSinceMs === null
      ? null
      : html` Data that is past its time has been held back since ${timeInSentence(last.heldSinceMs, nowMs)}.`
  return html`The last pass ended at ${timeInSentence(last.endedAtMs, nowMs)}. One runs every hour.${held}`
}

function countTable({ last }: RetentionView, wouldGo: WouldGoByStage): Markup {
  const of = (counts: RetentionCounts | undefined, stage: RetentionStage) => countText(counts?.[stage] ?? 0)
  const nowOf = (stage: RetentionStage): Part => {
    if (stage === 'texts' || stage === 'composed' || stage === 'audit') return html`<span class="dim">not counted</span>`
    const { count, isMore } = wouldGo[stage]
    return isMore ? `${countText(count)} or more` : countText(count)
  }
  return table({
    label: 'What the last pass did, and what would go now',
    columns: ['What', { number: 'Removed' }, { number: 'Held back' }, { number: 'Given up' }, { number: 'Would go now' }],
    rows: RETENTION_STAGES.map((stage) => [
      RETENTION_TITLES[stage],
      of(last?.removed, stage),
      of(last?.held, stage),
      of(last?.givenUp, stage),
      nowOf(stage),
    ]),
  })
}
