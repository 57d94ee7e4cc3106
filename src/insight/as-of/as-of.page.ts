import { APPROXIMATE_WORDS, type HistoryThen } from '../../console/parcels/look-back.ts'
import type { ExplainedParcel } from '../../console/parcels/parcel-queries.ts'
import { html, link, type Markup, withQuery } from '../../console/portal/html.ts'
import type { Visit } from '../../console/portal/layout.ts'
import type { ParcelSection } from '../../console/portal/parcels/parcel.pages.ts'
import { timeline } from '../../console/portal/parcels/parcel-history.page.ts'
import { mainIdentifier } from '../../console/portal/parcels/parcel-list.page.ts'
import { island } from '../../console/portal/parts.ts'
import { fullTime, readTime, timeField, timeInSentence } from '../../console/portal/times.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { UseCases } from '../../core/http/use-cases.ts'

/** Makes the section "As known at" of a parcel's page. */
export function asOfSections({ lookBack }: Pick<UseCases, 'lookBack'>): readonly ParcelSection[] {
  return [
    {
      id: 'known-at',
      title: 'As known at',
      position: 10,
      show: async (visit, parcel) => {
        const given = visit.query('asOf').trim()
        const identifier = mainIdentifier(parcel.identifiers)
        const shown = given === '' ? null : await lookedBack(given, visit.nowMs, { identifier, lookBack })
        return island(
          'known-at-part',
          html`${formOf(visit, identifier, given)}${shown === null ? null : resultOf(visit, parcel, identifier, shown)}`,
        )
      },
    },
  ]
}

/** What was known, or a sentence that says why it cannot be told. */
async function lookedBack(
  given: string,
  nowMs: number,
  { identifier, lookBack }: Pick<UseCases, 'lookBack'> & { readonly identifier: string },
): Promise<HistoryThen | string> {
  try {
    const asOfMs = Math.min(readTime(given, 'asOf'), nowMs)
    return await lookBack({ identifier, asOfMs, sinceMs: null, language: null })
  } catch (error) {
    if (error instanceof AppError && (error.code === 'not_found' || error.code === 'bad_request')) return error.message
    throw error
  }
}

function formOf({ to }: Visit, name: string, given: string): Markup {
  return html`<p>What did an app show at a time? The history of then is merged again from what the relay had learnt by then.</p>
<form class="filter" method="get" action="${to`/parcels/${name}`.path}#known-at">${timeField('as-of', 'asOf', 'Time', given)}
<p><button class="btn" type="submit">Show what was known</button></p></form>`
}

function resultOf({ to, nowMs }: Visit, parcel: ExplainedParcel, name: string, shown: HistoryThen | string): Markup {
  const now = link(withQuery(to`/parcels/${name}`, {}), 'Back to now')
  if (typeof shown === 'string') return html`<div class="note" role="status"><strong>Not known then</strong> ${shown}</div><p>${now}</p>`
  const { asOfMs, knownFromMs, approximate, entries, answer } = shown
  return html`${
    approximate.length === 0
      ? null
      : html`<div class="note warn" role="status"><strong>Approximate.</strong> ${approximate.map((because) => html`${APPROXIMATE_WORDS[because]} `)}</div>`
  }
<p>At ${fullTime(asOfMs, nowMs)} the relay knew this${knownFromMs === null ? null : html`; it has known the parcel since ${timeInSentence(knownFromMs, nowMs)}`}. ${now}</p>
${timeline({ ...parcel, entries }, nowMs)}
<details class="plain"><summary>How it would have answered an app</summary><pre><code>${answer.latest ?? 'a 404: no status was known'}</code></pre></details>`
}
