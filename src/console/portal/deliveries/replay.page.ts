import { counted, countText } from '../../../core/domain/amounts.ts'
import { buttonLink, html, link, type Markup } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import { options, timeField, type WebhookName } from '../list-filters.ts'
import { actionButton, crumbs, headline, icon, type SentAgain, sentAgainNote } from '../parts.ts'
import { fullTime } from '../times.ts'

export interface ReplayFields {
  /** The id of the webhook whose deliveries are sent again. */
  readonly of: string
  readonly state: string
  readonly since: string
  readonly to: string
}

/** The answer to the form, for the page to show. Null: nobody has sent the form. */
export type ReplaySaid =
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

export interface Replay {
  readonly fields: ReplayFields
  readonly said: ReplaySaid
  /** Includes removed webhooks. */
  readonly sources: readonly WebhookName[]
  readonly targets: readonly WebhookName[]
}

/** Makes the page that sends deliveries again. Its first button counts them, then a second one replays them. */
export function replayPage(visit: Visit, replay: Replay): string {
  const { to, person } = visit
  const main = html`${crumbs([to`/deliveries`, 'Deliveries'])}
${headline({ title: 'Replay deliveries', lead: 'Sends events again, each under its own id and in its parcel’s order. Receivers that remember ids notice the repeat.' })}
${replay.said === null ? null : answerOf(visit, replay.said, replay)}
${replay.targets.length === 0 ? nobody(visit) : replayForm(visit, replay)}`
  return renderPage(visit, { title: 'Replay · Deliveries', section: 'deliveries', person, main })
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
