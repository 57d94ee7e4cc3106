import type { ExplainedParcel } from '../../console/parcels/parcel-queries.ts'
import { mistakeIn } from '../../console/portal/form.ts'
import { html, link, type Markup, type Part, withQuery } from '../../console/portal/html.ts'
import { type PageRoute, postForm, type Visit } from '../../console/portal/layout.ts'
import type { ParcelSection } from '../../console/portal/parcels/parcel.pages.ts'
import { mainIdentifier } from '../../console/portal/parcels/parcel-list.page.ts'
import { island, settingsList } from '../../console/portal/parts.ts'
import { AppError } from '../../core/domain/errors.ts'
import { isLabelName, type OrderContext } from '../../core/domain/history/order-context.ts'
import type { UseCases } from '../../core/http/use-cases.ts'

/** Makes the section "Order" of a parcel's page. */
export function orderSections(): readonly ParcelSection[] {
  return [{ id: 'order', title: 'Order', position: -20, show: async (visit, parcel) => island('order-part', orderOf(visit, parcel)) }]
}

/** Makes the page that the form of the section leads to. */
export function orderPages({ manageOrders }: Pick<UseCases, 'manageOrders'>): readonly PageRoute[] {
  return [
    postForm('/parcels/:identifier/order', async ({ param, to, form, by }) => {
      // Browsers end lines with CR LF.
      const note = form.get('note').replaceAll('\r\n', '\n')
      const context = { reference: form.get('reference').trim() || null, labels: readLabels(form.get('labels')), note }
      return { goTo: to`/parcels/${(await manageOrders.save(param('identifier'), context, by, readShown(form.get('shown')))).identifier}` }
    }),
  ]
}

function orderOf(visit: Visit, { order, identifiers }: ExplainedParcel): Markup {
  const { reference, labels, note } = order
  const given = Object.entries(labels)
  const rows: readonly (readonly [string, Part])[] = [
    ...(reference === null
      ? []
      : [['Reference', html`${link(withQuery(visit.to`/parcels`, { reference }), reference)} <small>all its parcels</small>`] as const]),
    ...(given.length === 0 ? [] : [['Labels', given.map(([name, value]) => html`<code>${name}</code> ${value}<br>`)] as const]),
    ...(note === null ? [] : [['Note', note.split('\n').map((line) => html`${line}<br>`)] as const]),
  ]
  return html`${rows.length === 0 ? html`<p class="dim">Nobody has said to which order it belongs.</p>` : settingsList(rows)}
${visit.person.scope === 'admin' ? orderForm(visit, mainIdentifier(identifiers), order) : null}`
}

function orderForm({ to }: Visit, name: string, { reference, labels, note }: OrderContext): Markup {
  const lines = Object.entries(labels).map(([label, value]) => `${label}=${value}`)
  return html`<details class="plain"><summary>Change its order</summary>
<form class="form" method="post" action="${to`/parcels/${name}/order`.path}">
<input type="hidden" name="shown" value="${JSON.stringify({ reference, labels, note })}">
<div class="field"><label for="reference">Reference</label><input id="reference" name="reference" value="${reference ?? ''}" autocomplete="off" spellcheck="false" aria-describedby="reference-hint"><small id="reference-hint">The customer’s order number. Empty: none.</small></div>
<div class="field"><label for="labels">Labels</label><textarea class="code" id="labels" name="labels" rows="3" spellcheck="false" aria-describedby="labels-hint">${lines.join('\n')}</textarea><small id="labels-hint">One a line, such as <code>shop=north</code>; at most 16. Webhooks get the reference and the labels as headers.</small></div>
<div class="field"><label for="note">Note</label><textarea id="note" name="note" rows="2" aria-describedby="note-hint">${note}</textarea><small id="note-hint">It stays with the relay.</small></div>
<p><button class="btn" type="submit">Save the order</button></p>
</form></details>`
}

/** Reads the order that the form showed, so that it takes back nothing that somebody else has changed meanwhile. Null: it is not known. */
function readShown(text: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    throw new AppError('bad_request', 'The form has a wrong field: shown.')
  }
}

/** Throws `bad_request` for a line that names no label, or one that another line has named. */
function readLabels(text: string): Readonly<Record<string, string>> {
  const read = new Map<string, string>()
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const equals = line.indexOf('=')
    if (equals === -1) throw mistakeIn('labels', `Write each label as name=value: line ${at + 1} has no “=”.`)
    const name = line.slice(0, equals).trim()
    if (!isLabelName(name)) throw mistakeIn('labels', `Line ${at + 1}: a label is named by 1 to 32 of the characters a-z, 0-9 and -.`)
    if (read.has(name)) throw mistakeIn('labels', `Line ${at + 1} names a label that another line has named.`)
    read.set(name, line.slice(equals + 1))
  }
  return Object.fromEntries(read)
}
