export interface Bars {
  readonly title: string
  /** The legend of the marks beside the bars. */
  readonly mark: string
  /** Values as fractions of the simpler poller's. `mark`: null if there is none. */
  readonly bars: readonly { readonly label: string; readonly value: number; readonly mark: number | null }[]
}

export interface Curve {
  readonly name: string
  readonly color: string
  /** Calls per parcel, and mean staleness of lost entries in minutes. */
  readonly points: readonly (readonly [calls: number, minutes: number])[]
}

export interface Plotted {
  readonly parcels: number
  readonly bars: readonly Bars[]
  readonly curves: readonly Curve[]
}

const WIDTH = 760
const LEFT = 262
const RIGHT = 48
const ROW = 26
const SECTION_GAP = 74
const CURVES = { left: 64, height: 250, titleTop: 30 }
const INK = '#1f2328'
const FAINT = '#d0d7de'
const RELAY = '#1d4ed8'
const BEST = '#15803d'

/** Draws everything as one SVG, on a white background so that it is readable on dark pages. */
export function plot({ parcels, bars, curves }: Plotted): string {
  const parts: string[] = [
    `<g font-size="16" font-weight="600">${text(20, 32, 'start', `The polling brain, ${parcels.toLocaleString('en')} parcels simulated`)}</g>`,
  ]
  let top = 64
  for (const section of bars) {
    parts.push(...plotBars(section, top))
    top += section.bars.length * ROW + SECTION_GAP
  }
  parts.push(...plotCurves(curves, top))
  const height = top + CURVES.titleTop + CURVES.height + 56
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="${INK}">`,
    '<title>How late the relay knows of lost pushes, beside simpler pollers</title>',
    `<rect x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8" fill="#fff" stroke="${FAINT}"/>`,
    ...parts,
    '</svg>',
  ].join('\n')}\n`
}

function plotBars({ title, mark, bars }: Bars, top: number): readonly string[] {
  const max = Math.max(1.05, ...bars.map(({ value }) => value * 1.05))
  const x = (part: number) => LEFT + (part / max) * (WIDTH - LEFT - RIGHT)
  const from = top + 16
  const bottom = from + bars.length * ROW
  const ticks = [0, 0.25, 0.5, 0.75, 1]
  const labelled = bars.some((bar) => bar.mark !== null)
  return [
    `<g font-weight="600">${text(20, top, 'start', title)}</g>`,
    ...ticks.map((part) =>
      line(x(part), from, x(part), bottom, part === 1 ? `stroke="${INK}" stroke-dasharray="4 3"` : `stroke="${FAINT}"`),
    ),
    ...ticks.map((part) => text(x(part), bottom + 16, 'middle', String(part))),
    ...bars.flatMap(({ label, value, mark: at }, row) => {
      const middle = from + (row + 0.5) * ROW
      return [
        text(LEFT - 10, middle + 4, 'end', label),
        `<rect x="${LEFT}" y="${middle - 8}" width="${round(x(value) - LEFT)}" height="16" fill="${RELAY}"/>`,
        text(x(value) + 6, middle + 4, 'start', value.toFixed(2)),
        ...(at === null ? [] : [line(x(at), middle - 10, x(at), middle + 10, `stroke="#fff" stroke-width="5"`), markAt(x(at), middle)]),
      ]
    }),
    ...(labelled ? [markAt(LEFT - 242 + 4, bottom + 12), text(LEFT - 242 + 12, bottom + 16, 'start', mark)] : []),
  ]
}

function markAt(x: number, middle: number): string {
  return line(x, middle - 10, x, middle + 10, `stroke="${BEST}" stroke-width="3"`)
}

function plotCurves(curves: readonly Curve[], top: number): readonly string[] {
  const points = curves.flatMap((curve) => curve.points)
  const callsMax = Math.max(1, ...points.map(([calls]) => calls)) * 1.05
  const minutesMax = Math.max(1, ...points.map(([, minutes]) => minutes)) * 1.05
  const from = top + CURVES.titleTop
  const bottom = from + CURVES.height
  const x = (calls: number) => CURVES.left + (calls / callsMax) * (WIDTH - CURVES.left - RIGHT)
  const y = (minutes: number) => bottom - (minutes / minutesMax) * CURVES.height
  return [
    `<g font-weight="600">${text(20, top, 'start', 'Mean staleness of lost entries by calls, 5 % of pushes lost')}</g>`,
    ...ticksTo(minutesMax).flatMap((tick) => [
      line(CURVES.left, y(tick), WIDTH - RIGHT, y(tick), `stroke="${FAINT}"`),
      text(CURVES.left - 8, y(tick) + 4, 'end', String(tick)),
    ]),
    ...ticksTo(callsMax).map((tick) => text(x(tick), bottom + 18, 'middle', String(tick))),
    text((CURVES.left + WIDTH - RIGHT) / 2, bottom + 38, 'middle', 'calls per parcel, from its first scan to the end of its tail'),
    `<g transform="rotate(-90 18 ${(from + bottom) / 2})">${text(18, (from + bottom) / 2, 'middle', 'minutes')}</g>`,
    ...curves.flatMap(({ name, color, points: own }, at) => [
      `<polyline fill="none" stroke="${color}" stroke-width="2" points="${own.map(([calls, minutes]) => `${round(x(calls))},${round(y(minutes))}`).join(' ')}"/>`,
      ...own.map(([calls, minutes]) => `<circle cx="${round(x(calls))}" cy="${round(y(minutes))}" r="3.5" fill="${color}"/>`),
      `<rect x="${WIDTH - 200}" y="${from + 6 + at * 20}" width="12" height="12" fill="${color}"/>`,
      text(WIDTH - 182, from + 16 + at * 20, 'start', name),
    ]),
  ]
}

function text(x: number, y: number, anchor: 'start' | 'middle' | 'end', words: string): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${words}</text>`
}

function line(fromX: number, fromY: number, toX: number, toY: number, stroke: string): string {
  return `<path d="M${round(fromX)} ${round(fromY)}L${round(toX)} ${round(toY)}" ${stroke}/>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function ticksTo(max: number): readonly number[] {
  const step = roundTick(max / 5)
  return Array.from({ length: 8 }, (_, at) => Math.round(step * at * 100) / 100).filter((tick) => tick <= max)
}

function roundTick(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step))
  return [1, 2, 5, 10].map((part) => part * power).find((tick) => tick >= step) ?? step
}
