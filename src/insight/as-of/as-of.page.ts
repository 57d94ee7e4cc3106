import { APPROXIMATE_WORDS, type HistoryThen } from '../../console/parcels/look-back.ts'
import type { ExplainedParcel } from '../../console/parcels/parcel-queries.ts'
import { html, link, type Markup, withQuery } from '../../console/portal/html.ts'
import type { Visit } from '../../console/portal/layout.ts'
import type { ParcelSection } from '../../console/portal/parcels/parcel.pages.ts'
import { timeline } from '../../console/portal/parcels/parcel-history.page.ts'
import { mainIdentifier } from '../../console/portal/parcels/parcel-list.page.ts'
import { island } from '../../console/portal/parts.ts'
import { fullTime, readTime, timeField, timeInSentence } from '../../console/portal/times.ts'
import { counted } from '../../core/domain/amounts.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { EntryNews } from '../../core/domain/history/overwritten.ts'
import type { UseCases } from '../../core/http/use-cases.ts'

/** Makes the section "As known at" of a parcel's page. */
export function asOfSections({ lookBack }: Pick<UseCases, 'lookBack'>): readonly ParcelSection[] {
  return [
    {
      id: 'known-at',
      title: 'As known at',
      position: 10,
      show: async (visit, parcel) => {
        const given = { asOf: visit.query('asOf').trim(), since: visit.query('since').trim() }
        // Apps may have been answered by this identifier before another one was known.
        const typed = visit.param('identifier').toUpperCase()
        const identifier = parcel.identifiers.find(({ value }) => value === typed)?.value ?? mainIdentifier(parcel.identifiers)
        const isAsked = given.asOf !== '' || given.since !== ''
        const shown = isAsked ? await lookedBack(given, visit.nowMs, { identifier, lookBack }) : null
        return island(
          'known-at-part',
          html`${formOf(visit, identifier, given)}${shown === null ? null : resultOf(visit, parcel, identifier, shown)}`,
        )
      },
    },
  ]
}

/** What the form holds; empty: nothing. */
interface Given {
  readonly asOf: string
  readonly since: string
}

type LookedBack =
  | { readonly known: HistoryThen; readonly sinceMs: number | null }
  /** Why nothing can be told. */
  | { readonly known: null; readonly title: string; readonly because: string }

async function lookedBack(
  { asOf, since }: Given,
  nowMs: number,
  { identifier, lookBack }: Pick<UseCases, 'lookBack'> & { readonly identifier: string },
): Promise<LookedBack> {
  try {
    const asOfMs = asOf === '' ? null : readTime(asOf, 'Time')
    const sinceMs = since === '' ? null : readTime(since, 'Changed since')
    if (sinceMs !== null && sinceMs >= Math.min(asOfMs ?? nowMs, nowMs))
      throw new AppError('bad_request', `Changed since must be earlier than ${asOfMs === null || asOfMs > nowMs ? 'now' : 'Time'}.`)
    return { known: await lookBack({ identifier, asOfMs, sinceMs, language: null }), sinceMs }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (error.code === 'not_found') return { known: null, title: 'Not known then', because: error.message }
    if (error.code === 'bad_request') return { known: null, title: 'Nothing was looked up.', because: error.message }
    throw error
  }
}

function formOf({ to }: Visit, name: string, { asOf, since }: Given): Markup {
  return html`<p>What did an app show at a time? The history of then is merged again from what the relay had learnt by then. What it had learnt after another time can be marked.</p>
<form class="filters" method="get" action="${to`/parcels/${name}`.path}#known-at">
<div>${timeField('as-of', 'asOf', 'Time', asOf, true)}</div>
<div>${timeField('changed-since', 'since', 'Changed since', since, true)}</div>
<div><button class="btn" type="submit">Show what was known</button></div>
</form>`
}

function resultOf({ to, nowMs }: Visit, parcel: ExplainedParcel, name: string, shown: LookedBack): Markup {
  const now = link(withQuery(to`/parcels/${name}`, {}), 'Back to now')
  if (shown.known === null) return html`<div class="note" role="status"><strong>${shown.title}</strong> ${shown.because}</div><p>${now}</p>`
  const { asOfMs, knownFromMs, approximate, entries, answer, news } = shown.known
  return html`${
    approximate.length === 0
      ? null
      : html`<div class="note warn" role="status"><strong>Approximate.</strong> ${approximate.map((because) => html`${APPROXIMATE_WORDS[because]} `)}</div>`
  }
<p>At ${fullTime(asOfMs, nowMs)} the relay knew this${knownFromMs === null ? null : html`; it has known the parcel since ${timeInSentence(knownFromMs, nowMs)}`}. ${
    shown.sinceMs === null || news === null ? null : newsLine(shown.sinceMs, news.size, nowMs)
  }${now}</p>
${timeline({ ...parcel, entries }, nowMs, ({ sequence }) => markOf(news?.get(sequence)))}
<details class="plain"><summary>How it would have answered an app</summary><pre><code>${answer.latest ?? 'a 404: no status was known'}</code></pre></details>`
}

function newsLine(sinceMs: number, count: number, nowMs: number): Markup {
  const learnt = count === 0 ? 'nothing of it' : `something of ${counted(count, 'entry, which is', 'entries, which are')} marked`
  return html`After ${fullTime(sinceMs, nowMs)} it had learnt ${learnt}. `
}

/** Says what became of an entry, as `history --since` does. */
function markOf(news: EntryNews | undefined): string | null {
  return news === undefined ? null : `${news.kind} by ${news.doors.join(' and ')}`
}
