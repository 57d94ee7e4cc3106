import { isUtf8 } from 'node:buffer'
import { html, indentJson, link, type Markup, type Part, SHOWN_MAX, withQuery } from '../../console/portal/html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import { actionButton, asOfLine, crumbs, facts, headline, settingsList } from '../../console/portal/parts.ts'
import { fullTime, readTimes } from '../../console/portal/times.ts'
import { counted, countText, latenessText } from '../../core/domain/amounts.ts'
import { AppError, type ErrorCode } from '../../core/domain/errors.ts'
import type { RecordOutcome } from '../../core/domain/history/recording.ts'
import { type BodyFault, REASON_CHOICES, reasonSentence } from '../../core/domain/ingest/fault-in-body.ts'
import type { InspectedPush } from '../../core/domain/ingest/inbox.ts'
import { receivedText } from '../../core/domain/text.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import {
  type DismissChoice,
  faultSentence,
  type InboxFilters,
  type InboxSaid,
  inboxPage,
  outcomeText,
  pushMark,
  STATE_NAMES,
} from './inbox-list.page.ts'
import { INBOX_STATES } from './manage-inbox.ts'

const LIST_MAX = 100
/** The page shows these errors next to its filters. Other errors get an error page. */
const MISTAKES: readonly ErrorCode[] = ['bad_request', 'bad_tracking_number']
/** Errors that say why pushes were not reprocessed or dismissed. The page shows these too. */
const REFUSALS: readonly ErrorCode[] = ['not_reprocessable', 'not_dismissable', 'too_many_jobs']

/** Makes the pages about received pushes: the list and a page for each push. */
// oxlint-disable-next-line max-lines-per-function -- a list of routes, and the answers to them
export function inboxPages({ manageInbox }: Pick<UseCases, 'manageInbox'>): readonly PageRoute[] {
  return [
    getPage('/inbox', (visit) => list(visit, null)),
    postForm('/inbox', (visit) => (visit.form.get('do') === '' ? reprocessAll(visit) : dismissMany(visit)), {
      again: (visit, { action }) => list(visit, { kind: 'again', atMs: action.atMs }),
    }),
    getPage('/inbox/:id', (visit) => show(visit, null)),
    getPage('/inbox/:id/body', download),
    postForm('/inbox/:id/reprocess', reprocess),
    postForm('/inbox/:id/dismiss', dismiss),
  ]

  async function list(visit: Visit, said: InboxSaid): Promise<PageAnswer> {
    const [asked, cursor] = [visit.query('state'), visit.query('cursor')]
    if (!/^\d{0,15}$/.test(cursor)) throw new AppError('not_found', 'The list has no such page.')
    const filters: InboxFilters = {
      parcel: visit.query('parcel').trim(),
      reason: readReason(visit.query('reason')) ?? '',
      from: visit.query('from'),
      to: visit.query('to'),
    }
    const state = asked === 'all' ? null : (INBOX_STATES.find((one) => one === asked) ?? 'quarantined')
    const question = {
      state,
      reason: filters.reason === '' ? null : filters.reason,
      parcel: filters.parcel === '' ? null : filters.parcel,
      cursor: cursor === '' ? null : Number(cursor),
      limit: LIST_MAX,
    }
    const [groups, refused] = await Promise.all([manageInbox.quarantined(), manageInbox.refusedSenders()])
    const listing = { shown: state ?? 'all', filters, isFirst: cursor === '', groups, refused, said } as const
    try {
      const found = await manageInbox.list({ ...question, ...readTimes(filters) })
      return { page: inboxPage(visit, { ...listing, ...found, mistake: null }), status: said?.kind === 'refused' ? 409 : 200 }
    } catch (error) {
      if (!(error instanceof AppError) || !MISTAKES.includes(error.code)) throw error
      return { page: inboxPage(visit, { ...listing, pushes: [], next: null, mistake: error.message }), status: 400 }
    }
  }

  async function reprocessAll(visit: Visit): Promise<PageAnswer> {
    const reason = readReason(visit.form.get('reason'))
    const said = await orRefused(async (): Promise<InboxSaid> => {
      const answer = await manageInbox.reprocessAll({ state: 'quarantined', reason, dryRun: false }, visit.by)
      if (answer.kind === 'job') return { kind: 'job', jobId: answer.job.jobId, does: 'reprocesses' }
      return answer.kind === 'counted' ? null : answer
    })
    return await list(visit, said)
  }

  /** Counts the chosen pushes, and dismisses them once that count was confirmed. */
  async function dismissMany(visit: Visit): Promise<PageAnswer> {
    const choice = readChoice(visit)
    return await list(
      visit,
      await orRefused(async (): Promise<InboxSaid> => {
        const count = await countOf(visit, choice)
        if (count === 0 || visit.form.get('do') !== 'dismiss' || visit.form.get('counted') !== String(count))
          return { kind: 'counted', count, choice }
        if ('ids' in choice) {
          return { kind: 'dismissed', count: await dismissListed(visit, choice.ids) }
        }
        const answer = await manageInbox.dismissAll({ reason: choice.reason, dryRun: false }, visit.by)
        return answer.kind === 'job'
          ? { kind: 'job', jobId: answer.job.jobId, does: 'dismisses' }
          : { kind: 'dismissed', count: answer.count }
      }),
    )
  }

  /** Returns how many were still in quarantine. */
  async function dismissListed({ by }: Visit, ids: readonly string[]): Promise<number> {
    let count = 0
    for (const id of ids) {
      // The first one stores the form, whose id can be stored only once.
      const { form, ...others } = by
      const dismissed = await orRefused(() => manageInbox.dismiss(id, count === 0 && form !== undefined ? { ...others, form } : others))
      if (!('because' in dismissed)) count += 1
    }
    return count
  }

  async function countOf({ by }: Visit, choice: DismissChoice): Promise<number> {
    if ('ids' in choice) return choice.ids.length
    const answer = await manageInbox.dismissAll({ reason: choice.reason, dryRun: true }, by)
    return answer.kind === 'job' ? 0 : answer.count
  }

  async function show(visit: Visit, said: PushSaid): Promise<PageAnswer> {
    const push = await manageInbox.find(visit.param('id'))
    const page = pushPage(visit, { push, isIndented: visit.query('as') === 'indented', said })
    return { page, status: said?.kind === 'refused' ? 409 : 200 }
  }

  async function download({ param }: Visit): Promise<PageAnswer> {
    const { inboxId, body } = await manageInbox.find(param('id'))
    if (body === null) throw new AppError('not_found', 'Its bytes are no longer kept (retention.raw).')
    return { file: body, name: `push-${inboxId}.bin` }
  }

  async function reprocess(visit: Visit): Promise<PageAnswer> {
    return await show(visit, await orRefused(() => manageInbox.reprocess(visit.param('id'), visit.by)))
  }

  async function dismiss(visit: Visit): Promise<PageAnswer> {
    const refused = await orRefused(async () => {
      await manageInbox.dismiss(visit.param('id'), visit.by)
      return null
    })
    return refused === null ? { goTo: visit.to`/inbox/${visit.param('id')}` } : await show(visit, refused)
  }
}

function readChoice({ form }: Visit): DismissChoice {
  const ids = form
    .get('ids')
    .split(' ')
    .filter((id) => /^\d{1,15}$/.test(id))
    .slice(0, LIST_MAX)
  if (ids.length > 0) return { ids }
  const reason = readReason(form.get('reason'))
  if (reason === null) throw new AppError('bad_request', 'Choose which pushes to dismiss.')
  return { reason }
}

function readReason(text: string): string | null {
  return REASON_CHOICES.find(([reason]) => reason === text)?.[0] ?? null
}

/** Returns the result of the work or, if it fails with one of `REFUSALS`, the reason. */
async function orRefused<Done>(work: () => Promise<Done>): Promise<Done | { readonly kind: 'refused'; readonly because: string }> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AppError && REFUSALS.includes(error.code)) return { kind: 'refused', because: error.message }
    throw error
  }
}

/** The result of the button that somebody pressed on this page. Null: the page was only loaded. `refused`: the action was not possible. */
type PushSaid = RecordOutcome | { readonly kind: 'refused'; readonly because: string } | null

interface OnePush {
  readonly push: InspectedPush
  readonly isIndented: boolean
  readonly said: PushSaid
}

/** Makes the page of one push: what is wrong with it, its bytes as text, and how to reprocess it. */
function pushPage(visit: Visit, { push, isIndented, said }: OnePush): string {
  const { to, nowMs } = visit
  const { inboxId, state, reason, body } = push
  const canReprocess = state !== 'recorded' && body !== null
  const canDismiss = state === 'quarantined'
  const main = html`${crumbs([to`/inbox`, 'Inbox'])}
${headline({
  title: `Push ${inboxId}`,
  state: pushMark(push),
  lead: leadOf(push),
  actions: html`${canReprocess ? actionButton(to`/inbox/${inboxId}/reprocess`, 'Reprocess', 'main') : null}${
    canDismiss ? actionButton(to`/inbox/${inboxId}/dismiss`, 'Dismiss') : null
  }`,
  asOf: asOfLine(nowMs, to`/inbox/${inboxId}`),
})}
${noteOf(said)}
${facts([
  ['Event happened', push.eventAtMs === null ? 'not told' : fullTime(push.eventAtMs, nowMs)],
  ['Received', html`${fullTime(push.receivedAtMs, nowMs)}${latenessOf(push)}`],
  ['Signed with', html`key ${push.keyIndex + 1} <small>of webhook.sharedKeys</small>`],
  ['Content-Encoding', push.contentEncoding ?? 'none'],
  ['Body', push.bodyBytes === null ? 'no longer kept' : counted(push.bodyBytes, 'byte', 'bytes')],
  ['Came again', push.duplicates === 0 ? 'no' : counted(push.duplicates, 'time', 'times')],
  ['Names the parcel', parcelOf(visit, push)],
  ['Status', push.status === null ? 'not told' : receivedText(push.status)],
])}
<h2>Body${body === null ? null : isIndented ? ', indented' : ', as received'}</h2>
${body === null ? html`<p>The body is no longer kept (retention.raw).</p>` : bodyOf(visit, push, body, isIndented)}
${canReprocess ? whatTheyDo(canDismiss) : null}`
  const title = reason === null ? `Push ${inboxId} · Inbox` : `Push ${inboxId}, ${STATE_NAMES[state]} · Inbox`
  return renderPage(visit, 'inbox', title, main)
}

function whatTheyDo(canDismiss: boolean): Markup {
  return html`<h2>What the ${canDismiss ? 'two buttons do' : 'button does'}</h2>
${settingsList([
  [
    'Reprocess',
    'Reads it again with the version that runs now. If that version understands it, the relay records its entry and sends it to webhooks.',
  ],
  ...(canDismiss
    ? [
        [
          'Dismiss',
          'Gives the push up. No history changes, and no webhook gets it. It stays listed as long as its bytes are kept.',
        ] as const,
      ]
    : []),
])}`
}

/** How late the push was, as the carrier's report counts it (DOMAIN 10.1). */
function latenessOf({ eventAtMs, receivedAtMs }: InspectedPush): Markup | null {
  return eventAtMs === null ? null : html` <small>${latenessText(eventAtMs, receivedAtMs)}</small>`
}

function parcelOf({ to }: Visit, { state, identifiers: [identifier] }: InspectedPush): Part {
  if (identifier === undefined) return 'not told'
  return state === 'recorded' ? link(to`/parcels/${identifier}`, identifier) : html`<span class="id">${receivedText(identifier)}</span>`
}

function leadOf({ state, reason }: InspectedPush): string {
  if (state === 'recorded') return 'It was understood, and its event is part of its parcel’s history.'
  if (state === 'expired') return 'Its event is older than retention.history, so it was not recorded.'
  if (state === 'dismissed') return 'It was not understood, and somebody decided that nobody needs it.'
  return reason === null ? 'It was not understood.' : reasonSentence(reason)
}

function noteOf(said: PushSaid): Markup | null {
  if (said === null) return null
  if (said.kind === 'refused') return html`<div class="note bad" role="alert"><strong>Nothing was done.</strong> ${said.because}</div>`
  const isGood = said.kind === 'recorded' || said.kind === 'duplicate'
  return isGood
    ? html`<div class="note ok" role="status">${outcomeText(said)}</div>`
    : html`<div class="note warn" role="status">${outcomeText(said)}</div>`
}

function bodyOf({ to }: Visit, { inboxId, fault }: InspectedPush, body: Uint8Array, isIndented: boolean): Markup {
  const bytes = Buffer.from(body)
  const text = bytes.toString()
  const indented = isUtf8(bytes) ? indentJson(text) : null
  const here = to`/inbox/${inboxId}`
  const shown = isIndented && indented !== null ? receivedText(indented) : markedText(bytes, fault)
  const other = isIndented ? link(here, 'As received') : link(withQuery(here, { as: 'indented' }), 'Indented')
  return html`<pre tabindex="0">${shown}</pre>
<p class="more">${fault === null ? null : html`<span>${faultSentence(fault)}</span>`}${indented === null ? null : other}${link(to`/inbox/${inboxId}/body`, 'Download the exact bytes')}</p>
${isUtf8(bytes) ? null : html`<p class="dim">It is not UTF-8. Bytes that are not text are shown as <code>�</code>.</p>`}${bytes.length > SHOWN_MAX ? html`<p class="dim">Only ${countText(SHOWN_MAX)} of its bytes are shown.</p>` : null}`
}

/** If the wrong bytes are far from the start of the body, this many bytes before them are shown. */
const BEFORE_FAULT_BYTES = 2000

/** Shows the body as text, with its wrong bytes marked. If the body is long, shows only the part around them. */
function markedText(bytes: Buffer, fault: BodyFault | null): Markup {
  if (fault === null) return html`${receivedText(bytes.subarray(0, SHOWN_MAX))}`
  const from = fault.to <= SHOWN_MAX ? 0 : Math.max(0, fault.from - BEFORE_FAULT_BYTES)
  const end = Math.min(from + SHOWN_MAX, bytes.length)
  const text = (start: number, stop: number) => receivedText(bytes.subarray(start, Math.min(stop, end)))
  return html`${from > 0 ? '…' : null}${text(from, fault.from)}<mark>${text(fault.from, fault.to)}</mark>${text(fault.to, end)}`
}
