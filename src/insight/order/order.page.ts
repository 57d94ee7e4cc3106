import { html, type Markup, type Part } from '../../console/portal/html.ts'
import type { ParcelSection } from '../../console/portal/parcels/parcel-sections.ts'
import { island, settingsList } from '../../console/portal/parts.ts'
import type { OrderContext } from '../../core/domain/history/order-context.ts'

/** Makes the section "Order" of a parcel's page. */
export function orderSections(): readonly ParcelSection[] {
  return [{ id: 'order', title: 'Order', position: -20, show: async (_visit, { order }) => island('order-facts', orderOf(order)) }]
}

function orderOf({ reference, labels, note }: OrderContext): Markup {
  const given = Object.entries(labels)
  if (reference === null && note === null && given.length === 0) return html`<p class="dim">Nobody has said to which order it belongs.</p>`
  const rows: readonly (readonly [string, Part])[] = [
    ...(reference === null ? [] : [['Reference', reference] as const]),
    ...(given.length === 0 ? [] : [['Labels', given.map(([name, value]) => html`<code>${name}</code> ${value}<br>`)] as const]),
    ...(note === null ? [] : [['Note', note] as const]),
  ]
  return settingsList(rows)
}
