import { html, type Markup } from '../../console/portal/html.ts'
import { countText } from '../../core/domain/amounts.ts'

/** A series of a chart: its colour and its values. The first series is at the bottom. */
export interface Series {
  readonly name: string
  readonly colour: string
  readonly values: readonly number[]
}

const [WIDTH, FOOT, TOP] = [720, 16, 12]

export interface Chart {
  readonly series: readonly Series[]
  /** The names of the columns. */
  readonly names: readonly string[]
  /** Says what the chart shows, for people who cannot see it. */
  readonly summary: string
  /** Its width is 720. */
  readonly height?: number
}

/** Draws stacked columns as SVG without style or script, so that it can stand on a page of the portal and in a file. Names the colours of several series. */
export function stackedColumns({ series, names, summary, height = 150 }: Chart): Markup {
  const sums = names.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  const highest = Math.max(1, ...sums)
  const step = WIDTH / Math.max(1, names.length)
  const high = (value: number) => (value / highest) * (height - FOOT - TOP)
  const column = (at: number, part: number) => {
    const below = series.slice(0, part).reduce((sum, { values }) => sum + (values[at] ?? 0), 0)
    const value = series[part]?.values[at] ?? 0
    const top = height - FOOT - high(below + value)
    // What happened at all can be seen.
    return value <= 0
      ? ''
      : `M${round(at * step + step * 0.12)} ${round(top)}h${round(step * 0.76)}v${round(Math.max(0.8, high(value)))}h-${round(step * 0.76)}z`
  }
  const every = Math.ceil(names.length / 16)
  return html`<svg role="img" aria-label="${summary}" viewBox="0 0 ${WIDTH} ${height}" width="100%">
<text x="0" y="9" font-size="9" fill="#777">${countText(highest)}</text><path d="M0 ${TOP}H${WIDTH}M0 ${height - FOOT}H${WIDTH}" stroke="#bbb" stroke-width="0.5"/>
${series.map(({ colour }, part) => html`<path fill="${colour}" d="${names.map((_, at) => column(at, part)).join('')}"/>`)}
${names.map((name, at) => (at % every === 0 ? html`<text x="${round(at * step + step / 2)}" y="${height - 4}" font-size="9" text-anchor="middle" fill="#777">${name}</text>` : null))}</svg>${series.length === 1 ? null : legend(series)}`
}

function legend(series: readonly Series[]): Markup {
  return html`<p class="legend">${series.map(
    ({ name, colour }) =>
      html`<span><svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><rect width="10" height="10" fill="${colour}"/></svg> ${name} </span>`,
  )}</p>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
