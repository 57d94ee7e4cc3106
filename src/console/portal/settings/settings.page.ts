import { readShownTest } from '../../../core/domain/admin/operator-action.ts'
import { countText } from '../../../core/domain/amounts.ts'
import type { AttemptResult } from '../../../core/domain/delivery/delivery.ts'
import type { TimeCursor } from '../../../core/domain/delivery/operator-event.ts'
import { AppError } from '../../../core/domain/errors.ts'
import { receivedText } from '../../../core/domain/text.ts'
import type { Reloaded } from '../../../core/flow/ports.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { type OperationQueries, readTimeCursor } from '../../audit/operations.routes.ts'
import type { OperatorEventTable } from '../../events/operator-events.ts'
import type { SealedCounts } from '../../secrets/manage-secrets.ts'
import { buttonLink, html, link, type Markup } from '../html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../layout.ts'
import { actionButton, asOfLine, crumbs, eventTable, headline, icon, olderLink, sentAgainNote, table } from '../parts.ts'
import { fullTime } from '../times.ts'
import { testNote } from '../webhooks/failure-words.ts'

export interface SettingsPagesOptions extends Pick<UseCases, 'operations' | 'manageSecrets' | 'testOperator' | 'enableOperator'> {
  /** Returns the settings in effect, shaped like the config file, with secrets masked. */
  readonly config: () => Readonly<Record<string, unknown>>
  readonly wordEvent: OperatorEventTable['word']
}

const EVENTS_MAX = 100
/** Where operator events are sent. */
const OPERATOR = { id: '', origin: 'operator' } as const

/** Makes the pages with the settings in effect, and with all operator events. */
export function settingsPages({
  operations,
  manageSecrets,
  testOperator,
  enableOperator,
  config,
  wordEvent,
}: SettingsPagesOptions): readonly PageRoute[] {
  const show = async (visit: Visit, said: Markup | null): Promise<PageAnswer> => ({
    page: settingsPage(visit, { settings: settingsOf(config()), sealed: await manageSecrets.count(), said }),
  })

  const showEvents = async (visit: Visit, cursor: TimeCursor | null, tested: AttemptResult | null): Promise<PageAnswer> => {
    const found = await operations.events({ event: null, fromMs: null, toMs: null, cursor, limit: EVENTS_MAX })
    return { page: eventsPage(visit, { ...found, wordEvent }, tested) }
  }

  return [
    getPage('/settings', (visit) => show(visit, null)),
    postForm('/settings/reseal', async ({ by, to }) => {
      await manageSecrets.reseal(by)
      return { goTo: to`/settings` }
    }),
    postForm(
      '/settings/rotate-tokens',
      async (visit) => {
        const { validUntilMs } = await manageSecrets.rotateTokens({}, visit.by)
        return await show(visit, rotatedNote(validUntilMs, visit.nowMs))
      },
      { again: (visit, { action }) => show(visit, sentAgainNote({ kind: 'again', atMs: action.atMs }, visit.nowMs)) },
    ),
    getPage('/events', (visit) => showEvents(visit, cursorOf(visit), null)),
    postForm('/events/test', async (visit) => showEvents(visit, null, await testOperator(visit.by)), {
      again: (visit, { shown }) => showEvents(visit, null, readShownTest(shown)),
    }),
    postForm('/events/enable', async ({ by, to }) => {
      await enableOperator(by)
      return { goTo: to`/` }
    }),
  ]
}

function cursorOf({ query }: Visit) {
  if (query('cursor') === '') return null
  const cursor = readTimeCursor(query('cursor'))
  if (cursor === null) throw new AppError('not_found', 'The list has no such page.')
  return cursor
}

type Setting = readonly [name: string, value: string]

/** Lists every setting by its full name, such as `webhook.sharedKeys[0]`. */
function settingsOf(group: unknown, path = ''): readonly Setting[] {
  if (Array.isArray(group)) {
    if (group.every((item) => typeof item !== 'object' || item === null)) return [[path, group.map(String).join(', ')]]
    return group.flatMap((item, at) => settingsOf(item, `${path}[${at}]`))
  }
  if (typeof group !== 'object' || group === null) return [[path, String(group)]]
  return Object.entries(group).flatMap(([name, value]) => settingsOf(value, path === '' ? name : `${path}.${name}`))
}

interface Shown {
  readonly settings: readonly Setting[]
  readonly sealed: SealedCounts
  /** What the button did that somebody has just pressed. Null: the page was only loaded. */
  readonly said: Markup | null
}

function settingsPage(visit: Visit, { settings, sealed, said }: Shown): string {
  const { to, nowMs } = visit
  const sought = visit.query('query').trim().toLowerCase()
  const shown = settings.filter(([name]) => name.toLowerCase().includes(sought))
  const main = html`${headline({ title: 'Settings', lead: 'The config in effect, with defaults filled in and secrets masked.', actions: html`${buttonLink(to`/audit`, 'Audit: who changed what')}${buttonLink(to`/check`, 'Check this deployment')}${buttonLink(to`/retention`, 'Retention')}${buttonLink(to`/backups`, 'Backups')}`, asOf: asOfLine(nowMs, to`/settings`) })}
${said}
<h2 id="config">Config in effect</h2>
<form class="filters" role="search" action="${to`/settings`.path}" aria-label="Settings"><div><label for="q">Setting</label><input id="q" name="query" type="search" value="${visit.query('query').trim()}" autocomplete="off" spellcheck="false"></div><div><button class="btn" type="submit">Show</button></div></form>
${
  shown.length === 0
    ? html`<div class="empty"><h2>No setting has this in its name</h2><p>${link(to`/settings`, 'Show all settings')}</p></div>`
    : table({
        label: 'Config in effect',
        columns: ['Setting', 'Value'],
        rows: shown.map(([name, value]) => [html`<code>${name}</code>`, value === '' ? html`<span class="dim">none</span>` : value]),
      })
}
<h2 id="keys">Keys</h2>
${keys(visit, sealed)}`
  return renderPage(visit, 'settings', 'Settings', main)
}

type ShownEvents = Awaited<ReturnType<OperationQueries['events']>> & Pick<SettingsPagesOptions, 'wordEvent'>

/** `tested`: the result of sending a test event. Null: none was sent. */
function eventsPage(visit: Visit, { events, next, wordEvent }: ShownEvents, tested: AttemptResult | null): string {
  const { to, nowMs } = visit
  const main = html`${crumbs([to`/`, 'Overview'])}
${headline({ title: 'What happened', lead: 'Each change of state, the newest first.', actions: actionButton(to`/events/test`, 'Send a test event'), asOf: asOfLine(nowMs, to`/events`) })}
${tested === null ? null : testNote(visit, tested, 'operator.url', OPERATOR)}
<p>${link(to`/docs/runbooks`, 'Runbooks')} say for each event what to do, and when the trouble is over.</p>
${eventTable(events, nowMs, wordEvent)}
${olderLink(to`/events`, next)}`
  return renderPage(visit, 'overview', 'What happened', main)
}

/** `validUntilMs`: when the last token ends that the former key has signed. */
function rotatedNote(validUntilMs: number | null, nowMs: number): Markup {
  const until =
    validUntilMs === null
      ? null
      : html` Tokens and sessions that the former one has signed are valid until they expire, at the latest ${fullTime(validUntilMs, nowMs)}.`
  return html`<div class="note ok" role="status">${icon('ok', 'ok')} <strong>The key of tokens is replaced.</strong>${until}</div>`
}

/** Shows the keys in the store. One button encrypts webhooks' keys with the first at-rest key, the other replaces the key of tokens. */
function keys({ to }: Visit, { upToDate, outdated }: SealedCounts): Markup {
  const encrypted = outdated === 0 ? 'all with the first at-rest key' : `${countText(outdated)} of them with a key other than the first`
  return html`<p>The store holds ${countText(upToDate + outdated)} encrypted keys of webhooks, ${encrypted}. ${link(to`/docs/operating`, 'How to replace each key')}</p>
${outdated === 0 ? null : actionButton(to`/settings/reseal`, 'Encrypt all with the first key', 'main')}
<p>Tokens and sessions are signed with a key that the relay makes itself. After you replace the key, existing tokens and sessions stay valid until they expire.</p>
${actionButton(to`/settings/rotate-tokens`, 'Replace the key of tokens')}`
}

/** Makes the page that has the relay read its config again. */
export function reloadPages({ reloadConfig, replica }: Pick<UseCases, 'reloadConfig' | 'replica'>): readonly PageRoute[] {
  return [
    getPage('/reload', async (visit) => ({ page: reloadPage(visit, replica, null) })),
    postForm('/reload', reload, { again: async ({ to }) => ({ goTo: to`/reload` }) }),
  ]

  async function reload(visit: Visit): Promise<PageAnswer> {
    try {
      return { page: reloadPage(visit, replica, reloadedNote(await reloadConfig(visit.by))) }
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'not_reloadable') throw error
      return { page: reloadPage(visit, replica, refusedNote(error)), status: 409 }
    }
  }
}

function reloadPage(visit: Visit, replica: string, note: Markup | null): string {
  const { to } = visit
  const main = html`${crumbs([to`/settings`, 'Settings'])}
${headline({ title: 'Reload the config', lead: 'Reads the config file again, and the files that it names. If it has mistakes, nothing changes.', actions: actionButton(to`/reload`, note === null ? 'Reload the config' : 'Reload it again', 'main') })}
${note}
<p>It reloads <strong>${replica}</strong>, the replica that shows this page; each replica reads its own file. A secret that comes from a variable of the environment changes only by a restart. <code class="command">parcel-relay reload</code> and SIGHUP do the same.</p>
<p>${buttonLink(to`/check`, 'Check this deployment')}</p>`
  return renderPage(visit, 'settings', 'Reload the config', main)
}

function reloadedNote({ changed, needsRestart, problems }: Reloaded): Markup {
  const isGood = needsRestart.length === 0 && problems.length === 0
  return html`<div class="note ${isGood ? 'ok' : 'warn'}" role="status">${icon(isGood ? 'ok' : 'warn', isGood ? 'ok' : 'warn')} <strong>${changed.length === 0 ? 'The config is reloaded. Nothing has changed.' : 'The config is reloaded. In effect now:'}</strong>
${listOf(changed)}${needsRestart.length === 0 ? null : html`<p>These have changed too, and need a restart:</p>${listOf(needsRestart)}`}${
  problems.length === 0 ? null : html`<p>These files could not be used; their earlier content stays in use:</p>${listOf(problems)}`
}</div>`
}

function refusedNote({ message, facts }: AppError): Markup {
  return html`<div class="note bad" role="alert">${icon('bad', 'bad')} <strong>Nothing was changed.</strong> ${message} ${listOf(facts?.problems === undefined ? [] : [facts.problems].flat().map(String))}</div>`
}

function listOf(items: readonly string[]): Markup | null {
  return items.length === 0 ? null : html`<ul>${items.map((item) => html`<li class="answer">${receivedText(item)}</li>`)}</ul>`
}
