import { RETENTION_STAGES, type RetentionCounts, type RetentionStage } from '../../../domain/admin/retention.ts'
import { RETENTION_TITLES } from '../../../domain/admin/retention-titles.ts'
import { countText } from '../../../domain/amounts.ts'
import { formatDuration } from '../../../domain/duration.ts'
import type { ManageRetention, RetentionView, WouldGoByStage } from '../../../flow/admin/retention/manage-retention.ts'
import { html, type Markup, type Part } from '../html.ts'
import { goToJobs } from '../jobs/jobs.page.ts'
import { renderPage } from '../layout.ts'
import type { PageRoute, Visit } from '../page-route.ts'
import { actionButton, asOfLine, headline, settingsList, table } from '../parts.ts'
import { timeInSentence } from '../times.ts'

export interface RetentionPagesOptions {
  readonly manageRetention: ManageRetention
}

/** Makes the page about retention: how long data is kept, what the last pass has removed, and a button that starts a pass. */
export function retentionPages({ manageRetention }: RetentionPagesOptions): readonly PageRoute[] {
  return [
    {
      method: 'get',
      path: '/retention',
      scope: 'admin',
      answer: async (visit) => ({ page: retentionPage(visit, await manageRetention.view(), await manageRetention.wouldGo()) }),
    },
    {
      method: 'post',
      path: '/retention',
      scope: 'admin',
      again: goToJobs,
      answer: async (visit) => {
        await manageRetention.start(visit.by)
        return { goTo: visit.to`/jobs` }
      },
    },
  ]
}

function retentionPage(visit: Visit, view: RetentionView, wouldGo: WouldGoByStage): string {
  const { to, nowMs, person } = visit
  const { rawMs, historyMs, deliveriesMs, feedMs, auditMs, heldMs } = view.retention
  const main = html`${headline({ title: 'Retention', lead: leadOf(view, nowMs), asOf: asOfLine(nowMs, to`/retention`) })}
${settingsList([
  ['Bytes of pushes and answers', formatDuration(rawMs)],
  ['Parcels, after their last entry, watch order and question of an app', formatDuration(historyMs)],
  ['Deliveries that have ended', formatDuration(deliveriesMs)],
  ['The feed', formatDuration(feedMs)],
  ['The audit trail and operator events', formatDuration(auditMs)],
  ['What is undelivered, in quarantine or still needed', formatDuration(heldMs)],
])}
${countTable(view, wouldGo)}
<p>${actionButton(to`/retention`, 'Start a pass now')}</p>`
  return renderPage(visit, { title: 'Retention', section: 'settings', person, main })
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
    columns: [
      { title: 'What' },
      { title: 'Removed', isNumber: true },
      { title: 'Held back', isNumber: true },
      { title: 'Given up', isNumber: true },
      { title: 'Would go now', isNumber: true },
    ],
    rows: RETENTION_STAGES.map((stage) => [
      RETENTION_TITLES[stage],
      of(last?.removed, stage),
      of(last?.held, stage),
      of(last?.givenUp, stage),
      nowOf(stage),
    ]),
  })
}
