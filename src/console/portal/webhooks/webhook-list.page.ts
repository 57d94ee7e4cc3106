import { counted, countText, spanText } from '../../../core/domain/amounts.ts'
import { describeLimit, type ShownLimit } from '../../../core/domain/delivery/endpoint-health.ts'
import {
  CONDITIONS,
  conditionOf,
  type EndpointCondition,
  type EndpointSearch,
  type EndpointState,
} from '../../../core/domain/delivery/endpoint-state.ts'
import { firstLine } from '../../../core/domain/text.ts'
import type { EndpointView, FoundEndpoints } from '../../../core/flow/delivery/endpoint-queries.ts'
import { answerWord } from '../../problems/failure-words.ts'
import { buttonLink, html, link, type Markup, type Part, withQuery } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import { asOfLine, breakable, headline, type StateKind, stateMark, table } from '../parts.ts'
import { options, relativeTime, timeInSentence } from '../times.ts'

const KINDS: Readonly<Record<EndpointCondition, StateKind>> = { delivering: 'ok', untried: 'none', failing: 'bad', disabled: 'off' }

/** Shows the state of a webhook, with `extra` in small type after it. */
export function webhookMark(state: EndpointState, extra: Part = null): Markup {
  const word = conditionOf(state)
  return stateMark(KINDS[word], word, extra)
}

const DISABLED_BECAUSE: Readonly<Record<NonNullable<EndpointState['disabled']>, string>> = {
  operator: 'by an operator',
  gone: 'by its answer 410 Gone',
  failing: 'after 120 h of failures',
  unnamed: 'no config names it any more',
}

/** Says why, by whom and since when a webhook is disabled, in words that follow "disabled". Null: it is not disabled. */
export function disabledBecause({ disabled, disabledSince }: EndpointState, nowMs: number): Part {
  if (disabled === null) return null
  const by = disabledSince?.by ?? null
  const because = disabled === 'operator' && by !== null ? `by ${by}` : DISABLED_BECAUSE[disabled]
  return disabledSince === undefined ? because : html`${because}, since ${timeInSentence(disabledSince.atMs, nowMs)}`
}

export function limitText({ perSecond, waitUntilMs }: ShownLimit, nowMs: number): Markup {
  const wait =
    waitUntilMs === null || waitUntilMs - nowMs < WAIT_SHOWN_MS ? null : html`, waits until ${timeInSentence(waitUntilMs, nowMs)}`
  return html`${describeLimit(perSecond)}${wait}`
}

/** A shorter wait is over before somebody has read of it. */
const WAIT_SHOWN_MS = 10_000

/** From this number of webhooks on, the page has a search field. */
const SEARCHED_FROM = 20

export interface WebhookListing extends FoundEndpoints {
  readonly search: EndpointSearch
  readonly skip: number
  readonly limit: number
}

/** Makes the page that lists all webhooks, or those that match the search. Webhooks in trouble come first. */
export function webhookListPage(visit: Visit, listing: WebhookListing): string {
  const { to, nowMs, person } = visit
  const { all, endpoints, search } = listing
  const add = buttonLink(to`/webhooks/new`, 'Add webhook', 'main')
  if (all.length === 0) {
    const main = html`${headline({ title: 'Webhooks', lead: 'None yet.' })}
<div class="empty"><h2>Send every event to your own address</h2><p>The relay posts each new event there, signed and in order per parcel, in the carrier’s own form. It tries again until your side accepts.</p><p>${add}</p></div>`
    return renderPage(visit, { title: 'Webhooks', section: 'webhooks', person, main })
  }
  const failing = all.filter((one) => conditionOf(one) === 'failing').length
  const main = html`${headline({ title: 'Webhooks', actions: add, lead: leadOf(listing), asOf: asOfLine(nowMs, to`/webhooks`) })}
${all.length >= SEARCHED_FROM || isFiltered(search) ? searchForm(visit, search) : null}
${endpoints.length === 0 ? html`<div class="empty"><h2>No webhook matches the search</h2><p>${link(to`/webhooks`, 'Show all webhooks')}</p></div>` : rowsOf(visit, endpoints)}
${pagesOf(visit, listing)}`
  const title = failing === 0 ? 'Webhooks' : `${countText(failing)} failing · Webhooks`
  return renderPage(visit, { title, section: 'webhooks', person, main })
}

function isFiltered({ text, condition }: EndpointSearch): boolean {
  return text !== '' || condition !== null
}

function leadOf({ all, endpoints, found }: WebhookListing): Markup {
  const count = (condition: EndpointCondition) => all.filter((one) => conditionOf(one) === condition).length
  const [failing, disabled, untried] = [count('failing'), count('disabled'), count('untried')]
  const fail = failing === 0 ? 'none is failing' : html`<span class="bad-text">${counted(failing, 'is', 'are')} failing</span>`
  const waiting = endpoints.reduce((sum, { backlog }) => sum + backlog.waiting, 0)
  const isWhole = found === all.length && endpoints.length === all.length
  return html`${counted(count('delivering'), 'delivers', 'deliver')}, ${untried === 0 ? null : `${counted(untried, 'has', 'have')} accepted nothing yet, `}${fail}, ${disabled === 0 ? 'none is' : counted(disabled, 'is', 'are')} disabled.${
    isWhole && waiting > 0 ? ` ${counted(waiting, 'event waits', 'events wait')}; none is lost.` : null
  }`
}

function searchForm({ to }: Visit, { text, condition }: EndpointSearch): Markup {
  return html`<form class="filters" role="search" action="${to`/webhooks`.path}" aria-label="Webhooks">
<div><label for="q">Name or URL has</label><input id="q" name="query" type="search" value="${text}" autocomplete="off" spellcheck="false"></div>
<div><label for="s">State</label><select id="s" name="state">${options(
    [['', 'any, trouble first'], ...CONDITIONS.map((one) => [one, one] as const)],
    condition ?? '',
  )}</select></div>
<div><button class="btn" type="submit">Show</button></div>
</form>`
}

function pagesOf({ to }: Visit, { search, skip, limit, found, endpoints }: WebhookListing): Markup | null {
  if (found <= limit && skip === 0) return null
  const page = (from: number) => withQuery(to`/webhooks`, { query: search.text, state: search.condition, skip: from === 0 ? null : from })
  return html`<p class="more"><span>${countText(skip + 1)} to ${countText(skip + endpoints.length)} of ${countText(found)}</span>${
    skip === 0 ? null : link(page(Math.max(0, skip - limit)), 'Previous page')
  }${skip + limit >= found ? null : link(page(skip + limit), 'Next page')}</p>`
}

function rowsOf({ to, nowMs }: Visit, endpoints: readonly EndpointView[]): Markup {
  return table({
    label: 'Webhooks',
    columns: [
      { title: 'Webhook' },
      { title: 'State' },
      { title: 'Waiting', isNumber: true },
      { title: 'Last success' },
      { title: 'Last failure' },
    ],
    rows: endpoints.map((view) => [
      html`${link(to`/webhooks/${view.endpoint.id}`, html`<strong>${view.endpoint.name}</strong>`)}<small>${breakable(view.endpoint.url)}${view.origin === 'config' ? ' · from the config file' : null}</small>`,
      html`${webhookMark(view)}${sinceOf(view, nowMs)}`,
      waitingOf(view, nowMs),
      view.health.lastSuccessAtMs === null ? 'none yet' : relativeTime(view.health.lastSuccessAtMs, nowMs),
      lastFailureOf(view, nowMs),
    ]),
  })
}

function waitingOf({ backlog: { waiting, oldestAtMs } }: EndpointView, nowMs: number): Part {
  if (oldestAtMs === null) return countText(waiting)
  return html`${countText(waiting)}<small>oldest ${spanText(Math.max(0, nowMs - oldestAtMs))}</small>`
}

function lastFailureOf({ lastFailure }: EndpointView, nowMs: number): Part {
  if (lastFailure === null) return 'none in 30 days'
  const start = firstLine(lastFailure.answerStart)
  return html`${answerWord(lastFailure)}, ${relativeTime(lastFailure.lastAtMs, nowMs)}${start === '' ? null : html`<span class="answer">${start}</span>`}`
}

function sinceOf(view: EndpointView, nowMs: number): Part {
  const { failingSinceMs } = view.health
  const { dead } = view.backlog
  const givenUp = dead === 0 ? null : html`<small>${countText(dead)} given up</small>`
  if (view.disabled !== null) return html`<small>${disabledBecause(view, nowMs)}</small>${givenUp}`
  const isFailing = failingSinceMs !== null && view.health.probing !== null
  const limit = view.limit === null || view.health.probing !== null ? null : html`<small>${limitText(view.limit, nowMs)}</small>`
  return html`${isFailing ? html`<small>for ${spanText(nowMs - failingSinceMs)}</small>` : limit}${givenUp}`
}
