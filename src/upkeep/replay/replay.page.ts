import { withRemoved } from '../../console/portal/deliveries/delivery-list.page.ts'
import { buttonLink, html, link, type Markup } from '../../console/portal/html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../../console/portal/layout.ts'
import { actionButton, crumbs, headline, icon, type SentAgain, sentAgainNote } from '../../console/portal/parts.ts'
import { fullTime, namesOfWebhooks, options, readTime, timeField, type WebhookName } from '../../console/portal/times.ts'
import { counted, countText } from '../../core/domain/amounts.ts'
import { AppError, type ErrorCode } from '../../core/domain/errors.ts'
import { leavingOf } from '../../core/http/server/authorize.ts'
import type { UseCases } from '../../core/http/use-cases.ts'

const LIST_MAX = 100
/** The page shows these errors next to its form. Other errors get an error page. */
const MISTAKES: readonly ErrorCode[] = ['bad_request', 'bad_tracking_number', 'not_found', 'not_replayable', 'too_many_jobs']
/** The start of a replay if the form gives none. Only a replay with a start leaves out deliveries that were queued after the count. */
const EVER = '1970-01-01T00:00:00.001Z'

type Parts = Pick<UseCases, 'replayMany' | 'manageDeliveries' | 'manageEndpoints'>

/** Makes the page that sends many deliveries again. */
export function replayPages({ replayMany, manageDeliveries, manageEndpoints }: Parts): readonly PageRoute[] {
  return [
    getPage('/deliveries/replay', (visit) =>
      showReplay(visit, null, { of: visit.query('endpoint'), state: '', since: '', to: visit.query('endpoint') }),
    ),
    postForm('/deliveries/replay', replay, { again: (visit, { action }) => showReplay(visit, { kind: 'again', atMs: action.atMs }) }),
  ]

  /** Counts or replays what a form selects. A replay leaves out deliveries queued after the count, so that a form sent twice replays once. */
  async function replay(visit: Visit): Promise<PageAnswer> {
    const answer = await answerTo(visit, fieldsIn(visit)).catch((error: unknown): ReplaySaid => {
      if (error instanceof AppError && MISTAKES.includes(error.code)) return { kind: 'refused', because: error.message }
      throw error
    })
    return await showReplay(visit, answer)
  }

  async function showReplay(visit: Visit, said: ReplaySaid, fields = fieldsIn(visit)): Promise<PageAnswer> {
    const [targets, { deliveries }] = await Promise.all([
      namesOfWebhooks(manageEndpoints),
      manageDeliveries.list({ endpoint: null, parcel: null, state: null, from: null, to: null, cursor: null, limit: LIST_MAX }),
    ])
    const sources = withRemoved(targets, deliveries, fields.of)
    return { page: replayPage(visit, { fields, said, sources, targets }), status: said?.kind === 'refused' ? 400 : 200 }
  }

  async function answerTo({ form, by, ctx }: Visit, fields: ReplayFields): Promise<NonNullable<ReplaySaid>> {
    const since = fields.since === '' ? EVER : new Date(readTime(fields.since, 'The time')).toISOString()
    const order = { since, of: fields.of, ...(fields.state === '' ? {} : { state: fields.state }) }
    const counted = form.get('counted')
    const isReplay = form.get('do') === 'replay' && /^\d{1,15}$/.test(counted)
    const asker = { by, left: leavingOf(ctx.res).signal, ...(isReplay ? { untilMs: Number(counted) } : {}) }
    const answer = await replayMany(fields.to, { ...order, dryRun: !isReplay }, asker)
    return answer.kind === 'job' ? { kind: 'job', jobId: answer.job.jobId } : answer
  }
}

function fieldsIn({ form }: Visit): ReplayFields {
  return { of: form.get('of'), state: form.get('state'), since: form.get('since'), to: form.get('to') }
}

interface ReplayFields {
  /** The id of the webhook whose deliveries are sent again. */
  readonly of: string
  readonly state: string
  readonly since: string
  readonly to: string
}

/** The answer to the form, for the page to show. Null: nobody has sent the form. */
type ReplaySaid =
  | {
      readonly kind: 'counted'
      readonly count: number
      /** Whether the count stopped early, so that there may be more. */
      readonly more: boolean
      readonly parcels: number
      readonly oldestAtMs: number | null
      /** Why `count` is 0. Absent: `count` is above 0, or no reason is known. */
      readonly because?: string
    }
  | { readonly kind: 'replayed'; readonly count: number }
  | { readonly kind: 'job'; readonly jobId: number }
  | SentAgain
  | { readonly kind: 'refused'; readonly because: string }
  | null

interface Replay {
  readonly fields: ReplayFields
  readonly said: ReplaySaid
  /** Includes removed webhooks. */
  readonly sources: readonly WebhookName[]
  readonly targets: readonly WebhookName[]
}

/** Makes the page that sends deliveries again. Its first button counts them, then a second one replays them. */
function replayPage(visit: Visit, replay: Replay): string {
  const { to } = visit
  const main = html`${crumbs([to`/deliveries`, 'Deliveries'])}
${headline({ title: 'Replay deliveries', lead: 'Sends events again, each under its own id and in its parcel’s order. Receivers that remember ids notice the repeat.' })}
${replay.said === null ? null : answerOf(visit, replay.said, replay)}
${replay.targets.length === 0 ? nobody(visit) : replayForm(visit, replay)}`
  return renderPage(visit, 'deliveries', 'Replay · Deliveries', main)
}

function nobody({ to }: Visit): Markup {
  return html`<div class="empty"><h2>There is no webhook to send to</h2><p>${buttonLink(to`/webhooks/new`, 'Add webhook', 'main')}</p></div>`
}

function replayForm({ to }: Visit, { fields, said, sources, targets }: Replay): Markup {
  const named = (webhooks: readonly WebhookName[]) => webhooks.map(({ id, name }) => [id, name] as const)
  const main = said?.kind === 'counted' && said.count > 0 ? '' : ' main'
  return html`<form method="post" action="${to`/deliveries/replay`.path}">
<div class="filters">
<div><label for="ro">What was sent to</label><select id="ro" name="of">${options(named(sources), fields.of)}</select></div>
<div><label for="rs">and is</label><select id="rs" name="state">${options(
    [
      ['', 'given up or cancelled'],
      ['dead', 'given up'],
      ['cancelled', 'cancelled'],
      ['delivered', 'delivered'],
    ],
    fields.state,
  )}</select></div>
<div>${timeField('rf', 'since', 'queued since', fields.since)}</div>
<div><label for="rt">Send to</label><select id="rt" name="to">${options(named(targets), fields.to)}</select></div>
</div>
<p><button class="btn${main}" type="submit" name="do" value="count">Count first</button></p>
</form>`
}

function answerOf({ to, nowMs }: Visit, said: NonNullable<ReplaySaid>, { fields, sources, targets }: Replay): Markup {
  const nameIn = (webhooks: readonly WebhookName[], id: string) => webhooks.find((one) => one.id === id)?.name ?? `webhook ${id}`
  const target = nameIn(targets, fields.to)
  if (said.kind === 'refused') return html`<div class="note bad" role="alert"><strong>Nothing was replayed.</strong> ${said.because}</div>`
  if (said.kind === 'again') return sentAgainNote(said, nowMs)
  if (said.kind === 'job') {
    return html`<div class="note ok" role="status"><strong>There are many, so job ${said.jobId} replays them to ${target}</strong> in the background. ${link(to`/jobs`, 'Jobs')} shows how far it is.</div>`
  }
  if (said.kind === 'replayed') {
    return said.count === 0
      ? html`<div class="note" role="status"><strong>Nothing was replayed.</strong> What was counted is queued already.</div>`
      : html`<div class="note ok" role="status">${icon('ok', 'ok')} <strong>${counted(said.count, 'delivery is', 'deliveries are')} queued again</strong> for ${target}.</div>`
  }
  if (said.count === 0)
    return html`<div class="note" role="status"><strong>There are none.</strong> ${said.because ?? 'Choose another state or an earlier time.'}</div>`
  // If `more` is true, the count includes one beyond the limit.
  const amount = said.more ? `more than ${countText(said.count - 1)} deliveries` : counted(said.count, 'delivery', 'deliveries')
  const parcels = said.more ? 'many parcels' : counted(said.parcels, 'parcel', 'parcels')
  const { oldestAtMs } = said
  const oldest = oldestAtMs === null ? null : html`, the oldest queued ${fullTime(oldestAtMs, nowMs)}`
  return html`<div class="note" role="status"><p><strong>${amount} of ${parcels}</strong> to ${nameIn(sources, fields.of)}${oldest}.</p>
<p>They are sent to ${target}, each under its own id, before later events of the same parcels.</p>
${actionButton(to`/deliveries/replay`, `Replay ${amount} to ${target}`, 'main', { ...fields, do: 'replay', counted: String(nowMs) })}</div>`
}
