import { sumOf, type Tally } from '../../../core/domain/admin/tally.ts'
import { counted, countText, spanText } from '../../../core/domain/amounts.ts'
import { type AttemptResult, FAILING_MAX_MS } from '../../../core/domain/delivery/delivery.ts'
import { describeLimit, type ShownLimit } from '../../../core/domain/delivery/endpoint-health.ts'
import type { SecretOrigin } from '../../../core/domain/delivery/endpoint-keys.ts'
import { FILTERS, ofEach, SETTINGS, type Setting, type SettingValue } from '../../../core/domain/delivery/endpoint-settings.ts'
import {
  CONDITIONS,
  conditionOf,
  type EndpointCondition,
  type EndpointSearch,
  type EndpointState,
} from '../../../core/domain/delivery/endpoint-state.ts'
import { digest, firstLine, receivedText } from '../../../core/domain/text.ts'
import type { EndpointView, FoundEndpoints, InspectedEndpoint, NextProbe } from '../../../core/flow/delivery/endpoint-queries.ts'
import { isInTrouble } from '../../problems/verdict.ts'
import { answerWord, extentOf, failureSentence, wordFailure } from '../../problems/words.ts'
import { axis, bars } from '../charts.ts'
import { buttonLink, html, link, type Markup, type Part, withQuery } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import {
  actionButton,
  asOfLine,
  breakable,
  copyable,
  crumbs,
  facts,
  headline,
  island,
  type StateKind,
  settingsList,
  stateMark,
  table,
  wordsOnPage,
} from '../parts.ts'
import { fullTime, hourBegun, options, relativeTime, settingText, timeInSentence, timeInTable } from '../times.ts'
import { remedyOf, testNote } from './failure-words.ts'
import { unsetWords } from './webhook-form.ts'

const KINDS: Readonly<Record<EndpointCondition, StateKind>> = { delivering: 'ok', untried: 'none', failing: 'bad', disabled: 'off' }

/** Shows the state of a webhook, with `extra` in small type after it. */
function webhookMark(state: EndpointState, extra: Part = null): Markup {
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
function disabledBecause({ disabled, disabledSince }: EndpointState, nowMs: number): Part {
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

interface WebhookListing extends FoundEndpoints {
  readonly search: EndpointSearch
  readonly skip: number
  readonly limit: number
}

/** Makes the page that lists all webhooks, or those that match the search. Webhooks in trouble come first. */
export function webhookListPage(visit: Visit, listing: WebhookListing): string {
  const { to, nowMs } = visit
  const { all, endpoints, search } = listing
  const add = buttonLink(to`/webhooks/new`, 'Add webhook', 'main')
  if (all.length === 0) {
    const main = html`${headline({ title: 'Webhooks', lead: 'None yet.' })}
<div class="empty"><h2>Send every event to your own address</h2><p>The relay posts each new event there, signed and in order per parcel, in the carrier’s own form. It tries again until your side accepts.</p><p>${add}</p></div>`
    return renderPage(visit, 'webhooks', 'Webhooks', main)
  }
  const failing = all.filter((one) => conditionOf(one) === 'failing').length
  const main = html`${headline({ title: 'Webhooks', actions: add, lead: listLead(listing), asOf: asOfLine(nowMs, to`/webhooks`) })}
${all.length >= SEARCHED_FROM || isFiltered(search) ? searchForm(visit, search) : null}
${endpoints.length === 0 ? html`<div class="empty"><h2>No webhook matches the search</h2><p>${link(to`/webhooks`, 'Show all webhooks')}</p></div>` : rowsOf(visit, endpoints)}
${pagesOf(visit, listing)}`
  const title = failing === 0 ? 'Webhooks' : `${countText(failing)} failing · Webhooks`
  return renderPage(visit, 'webhooks', title, main)
}

function isFiltered({ text, condition }: EndpointSearch): boolean {
  return text !== '' || condition !== null
}

function listLead({ all, endpoints, found }: WebhookListing): Markup {
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
    columns: ['Webhook', 'State', { number: 'Waiting' }, 'Last success', 'Last failure'],
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

/** The result of the button that somebody pressed on this page. Null: the page was only loaded. */
export type WebhookSaid = { readonly kind: 'tested'; readonly result: AttemptResult } | null

export function webhookPage(visit: Visit, view: InspectedEndpoint & { readonly attempts: readonly Tally[] }, said: WebhookSaid): string {
  const { to, nowMs } = visit
  const { id, name } = view.endpoint
  const word = conditionOf(view)
  const isManaged = view.origin === 'managed'
  const main = html`${crumbs([to`/webhooks`, 'Webhooks'])}
${headline({
  title: name,
  state: webhookMark(view, markExtra(view, nowMs)),
  lead: leadOf(view, nowMs),
  actions: html`${word === 'failing' ? actionButton(to`/webhooks/${id}/retry`, 'Retry now', 'main') : null}${word === 'disabled' && (isManaged || isInTrouble(view)) ? actionButton(to`/webhooks/${id}/enable`, 'Enable', 'main') : null}${actionButton(to`/webhooks/${id}/test`, 'Send test')}${isManaged ? buttonLink(to`/webhooks/${id}/edit`, 'Edit') : null}`,
  asOf: asOfLine(nowMs, to`/webhooks/${id}`, true),
  isLive: true,
})}
${said === null ? null : testNote(visit, said.result, view.endpoint.url, webhookOf(view))}
${island('trouble', explanation(visit, view))}
${island('facts', facts(factsOf(view, nowMs)))}
${attemptStrip(view.attempts)}
<p>${link(withQuery(to`/deliveries`, { endpoint: id }), 'All deliveries')}, ${link(withQuery(to`/audit`, { about: 'endpoint', id }), 'who changed it')}</p>
${island('failures', failureTable(visit, view))}
<div class="cols"><section aria-labelledby="set"><h2 id="set">Settings</h2>
${settingsList([...settingsOf(view, visit.nowMs), ...(isManaged ? [] : [['Shared key', html`${fingerprintOf(view.fingerprints?.current)} ${originOf(view.keyFrom)}`] as const])])}
${isManaged ? html`<p>${buttonLink(to`/webhooks/${id}/edit`, 'Edit settings')}</p>` : html`<p class="dim">It is defined in the config file. Change it there, then reload.</p>`}</section>
${isManaged ? keySection(visit, view) : null}
</div>
${isManaged ? stopSection(visit, view) : null}`
  const title = word === 'delivering' ? `${name} · Webhooks` : `${name}, ${word} · Webhooks`
  return renderPage(visit, 'webhooks', title, main)
}

function attemptStrip(attempts: readonly Tally[]): Markup {
  const of = (name: string) => attempts.map(({ counts }) => counts[name] ?? 0)
  const [accepted, failed] = [of('accepted'), of('failed')]
  const sum = sumOf(attempts)
  if (Object.values(sum).every((count) => count === 0)) return html`<h2 id="attempts">Attempts</h2><p>None in the last 24 hours.</p>`
  const summary = `Last 24 hours: ${countText(sum.accepted ?? 0)} accepted, ${countText(sum.failed ?? 0)} failed`
  return html`<h2 id="attempts">Attempts</h2>
<p>${summary}${(sum['given up'] ?? 0) > 0 ? `, ${countText(sum['given up'] ?? 0)} events given up` : ''}. Red: failed.</p>
${bars({ values: accepted, over: failed, size: 'strip', summary })}
${axis([...[0, 8, 16].map((at) => hourBegun(attempts[at]?.fromMs ?? 0)), 'now'])}`
}

function markExtra({ limit, ...state }: EndpointView, nowMs: number): Part {
  const { failingSinceMs } = state.health
  if (state.disabled !== null) return disabledBecause(state, nowMs)
  if (state.health.probing === null || failingSinceMs === null)
    return limit === null ? (conditionOf(state) === 'untried' ? 'it has accepted nothing yet' : null) : limitText(limit, nowMs)
  return html`since ${timeInSentence(failingSinceMs, nowMs)}, ${spanText(nowMs - failingSinceMs)}`
}

function leadOf({ backlog: { waiting, oldestAtMs }, ...state }: EndpointView, nowMs: number): Part {
  const word = conditionOf(state)
  const since = oldestAtMs === null ? null : html`, the oldest since ${timeInSentence(oldestAtMs, nowMs)}`
  const wait = html`${waiting === 0 ? 'Nothing waits' : counted(waiting, 'event waits', 'events wait')}${since}.`
  if (word === 'disabled')
    return html`Nothing is sent. ${waiting === 0 ? 'Its events wait' : html`${wait} They wait`} until it is enabled, and are then sent in order.`
  if (word === 'failing') return html`${wait} None is lost: they are sent in order once it answers with 2xx.`
  return html`${state.limit === null ? 'It is sent each new event.' : 'It is sent events as fast as it takes them.'} ${wait}`
}

/** Null: the webhook is in no trouble, or no failure is stored. */
function explanation(visit: Visit, { lastFailure, limit, ...state }: InspectedEndpoint): Markup | null {
  if (limit !== null && state.health.probing === null) return null
  const { endpoint, health, disabled } = state
  if (lastFailure === null || (disabled === null ? health.failingSinceMs === null : !isInTrouble(state))) return null
  const then = thenOf(state)
  const words = wordFailure(lastFailure, endpoint.url, extentOf(state, lastFailure))
  return html`<div class="note bad"><strong>${wordsOnPage(failureSentence(words), visit.nowMs)}</strong> ${remedyOf(visit, words, webhookOf(state))} ${then}.</div>`
}

/** What to do once the failure is mended. It names only what the page has. */
function thenOf(state: EndpointState): string {
  const word = conditionOf(state)
  if (word === 'failing') return 'Once it is mended, press “Retry now”'
  if (word !== 'disabled') return 'The relay tries again by itself'
  return state.origin === 'managed'
    ? 'Then enable it, or disable or remove it for good'
    : 'Then enable it, or take it out of the config file'
}

function webhookOf({ endpoint: { id }, origin }: EndpointState) {
  return { id, origin }
}

function factsOf(
  { health, disabled, queuedTo, endpoint, backlog, lastFailure, nextProbe }: InspectedEndpoint,
  nowMs: number,
): readonly (readonly [string, Part])[] {
  const { lastSuccessAtMs, probing, failedForMs } = health
  const isFailing = disabled === null && probing !== null
  return [
    ['Last success', lastSuccessAtMs === null ? 'none yet' : relativeTime(lastSuccessAtMs, nowMs)],
    [
      'Last failure',
      lastFailure === null ? 'none in 30 days' : html`${answerWord(lastFailure)}, ${relativeTime(lastFailure.lastAtMs, nowMs)}`,
    ],
    ...(nextProbe === null ? [] : [['Next probe', nextProbeText(nextProbe, nowMs)] as const]),
    ...(isFailing
      ? [['If it goes on', `disabled after ${FAILING_MAX_MS / 3_600_000} h of failures; ${spanText(failedForMs)} so far`] as const]
      : []),
    ['Given up', countText(backlog.dead)],
    ...(queuedTo === null ? [] : [['Catching up', html`queued to sequence ${queuedTo}`] as const]),
    ['URL', html`<span class="id">${copyable('u', endpoint.url, 'the URL')}</span>`],
  ]
}

/** A new event of a parcel without waiting events may be sent earlier than the next scheduled probe. */
function nextProbeText({ atMs, ofNewMs }: NextProbe, nowMs: number): Part {
  const ofNew = ofNewMs <= nowMs ? 'at once' : relativeTime(ofNewMs, nowMs)
  if (atMs === null) return html`with the next event, ${ofNew}`
  if (atMs <= nowMs) return 'now'
  return atMs <= ofNewMs ? relativeTime(atMs, nowMs) : html`${relativeTime(atMs, nowMs)}; an event of another parcel ${ofNew}`
}

function failureTable(visit: Visit, { failures, ...state }: InspectedEndpoint): Markup | null {
  const { to, nowMs } = visit
  if (failures.length === 0) return null
  return html`<h2>What it answered</h2>
<p class="dim">Failed attempts of the last 30 days, grouped by equal answers.</p>
${table({
  label: 'Failed attempts by answer',
  columns: ['Answer', { number: 'Times' }, { time: 'First' }, { time: 'Last' }, 'What it said', 'Example'],
  rows: failures.map((failure) => {
    const text = receivedText(failure.answerStart)
    const words = wordFailure(failure, state.endpoint.url, extentOf(state, failure))
    return [
      failure.status === null ? html`<span class="keep">no answer</span>` : String(failure.status),
      countText(failure.count),
      timeInTable(failure.firstAtMs, nowMs),
      timeInTable(failure.lastAtMs, nowMs),
      html`<span class="answer">${failure.status === null ? answerWord(failure) : text === '' ? '(no body)' : text}</span><small>${remedyOf(visit, words, webhookOf(state))}</small>`,
      link(to`/deliveries/${failure.deliveryId}`, `Delivery ${failure.deliveryId}`),
    ]
  }),
})}`
}

function settingsOf({ endpoint, beganAtMs }: EndpointState, nowMs: number): readonly (readonly [string, Part])[] {
  const { filters, backfill, ratePerSecond, scheduleMs, headers, ...settings } = endpoint
  const values = new Map<string, SettingValue>(Object.entries({ ...filters, ...settings, rate: ratePerSecond, schedule: scheduleMs }))
  const listed = (table: Readonly<Record<string, Setting>>) =>
    Object.values(ofEach(table, (row, name) => [row.listed ?? row.label, settingWords(row, values.get(name) ?? null)] as const))
  const { events, backfill: _, signature, refusals, ...limits } = SETTINGS
  return [
    ...listed({ events, ...FILTERS }),
    ['Events since', backfill ? 'ever' : fullTime(beganAtMs, nowMs)],
    ...listed(limits),
    ['Fixed headers', headers.length === 0 ? html`none${BY_DEFAULT}` : headers.join(', ')],
    ...listed({ signature, refusals }),
  ]
}

const BY_DEFAULT = html` <small>default</small>`

function settingWords(row: Setting, value: SettingValue): Part {
  if (row.kind === 'several') return row.words.filter((_, at) => `,${String(value)},`.includes(`,${row.names[at]},`)).join(', ')
  if ('names' in row) return row.words[row.names.indexOf(String(value ?? ''))]
  if (row.kind === 'flag') return value === true ? 'yes' : 'no'
  if (row.kind === 'values') return typeof value === 'object' && value !== null ? value.join(', ') || 'none' : 'all'
  if (value === null) return html`${unsetWords(row)}${BY_DEFAULT}`
  return typeof value === 'object' ? value.map(Number).map(settingText).join(', ') : `${value}${row.unit ?? ''}`
}

/** Returns a digest of a webhook's encrypted keys. Forms send it back, which shows whether the keys have changed since the page was made. */
export function stampOfKeys({ keys }: EndpointState): string {
  return keys === null ? '' : digest(`${keys.current} ${keys.next?.sealed ?? ''}`)
}

function fingerprintOf(fingerprint: string | null | undefined): Part {
  return fingerprint === null || fingerprint === undefined ? 'The relay cannot open it.' : html`Fingerprint <code>${fingerprint}</code>.`
}

function originOf(from: SecretOrigin | null): string {
  if (from === null) return 'It is written in the config file.'
  return 'env' in from ? `It comes from the environment variable ${from.env}.` : `It comes from the file ${from.file}.`
}

function keySection({ to, nowMs }: Visit, state: InspectedEndpoint): Markup {
  const { id } = state.endpoint
  const next = state.keys?.next ?? null
  const keys = stampOfKeys(state)
  return html`<section aria-labelledby="key"><h2 id="key">Shared key</h2>
${
  next === null
    ? html`<p>${fingerprintOf(state.fingerprints?.current)} ${keyAge(state, nowMs)} It cannot be shown. To compare: <code>parcel-relay fingerprint --key-file FILE</code>.</p>`
    : html`<div class="note"><strong>Being replaced.</strong> Both keys sign until ${fullTime(next.fromMs, nowMs)}, ${relativeTime(next.fromMs, nowMs)}. Then the new one takes over. The old one: ${fingerprintOf(state.fingerprints?.current)} The new one: ${fingerprintOf(state.fingerprints?.next)} Put it into the receiver before that time.
<div class="acts">${actionButton(to`/webhooks/${id}/new-key-now`, 'Use only the new key, now', '', { keys })}</div></div>`
}
<details class="plain"><summary>Replace the key</summary><form class="form" method="post" action="${to`/webhooks/${id}/key`.path}"><input type="hidden" name="keys" value="${keys}">
<p>For 24 h both keys sign: the old one in the usual header, the new one in <code>x-service-hmac-sha256-next</code>. Put the new key into the receiver within that time.</p>
<div class="field"><label for="nk">New shared key</label><input id="nk" name="sharedKey" type="password" autocomplete="new-password" aria-describedby="nk-hint"><small id="nk-hint">Empty: the relay makes one and shows it once.</small></div>
<div class="pick"><input type="checkbox" id="leak" name="at" value="now"><label for="leak">The old key has leaked: use only the new one, from now on <small>The receiver refuses events until it has the new key. They wait.</small></label></div>
<p><button class="btn" type="submit">Replace the key</button></p></form></details>
</section>`
}

function keyAge({ keys }: EndpointState, nowMs: number): Part {
  const sinceMs = keys?.currentSinceMs
  return sinceMs === undefined ? null : html`In use since ${timeInSentence(sinceMs, nowMs)}, ${spanText(Math.max(0, nowMs - sinceMs))}.`
}

function stopSection({ to }: Visit, state: EndpointView): Markup {
  const { id, name } = state.endpoint
  const { waiting } = state.backlog
  const events = counted(waiting, 'event', 'events')
  return html`<section class="danger-zone" aria-labelledby="dz"><h2 id="dz">Stop</h2>
${state.disabled === null || isInTrouble(state) ? html`<details><summary>Disable</summary><p>${state.disabled === null ? 'Nothing more is sent.' : 'It stays disabled, and is no problem any more.'} Its events wait, and are sent when you enable it again.</p>${actionButton(to`/webhooks/${id}/disable`, `Disable ${name}`, 'danger')}</details>` : null}
<details><summary>Remove</summary><form class="form" method="post" action="${to`/webhooks/${id}/remove`.path}"><p>${waiting === 0 ? 'Nothing waits for it.' : html`The ${events} that ${waiting === 1 ? 'waits is' : 'wait are'} cancelled. They stay listed, and can be replayed to another webhook.`} Its key is destroyed.</p>
<div class="field"><label for="sure">Type ${name} to confirm</label><input id="sure" name="confirm" autocomplete="off" spellcheck="false"></div><p><button class="btn danger sure" type="submit">Remove ${name}${waiting === 0 ? null : ` and cancel ${events}`}</button></p></form></details></section>`
}
