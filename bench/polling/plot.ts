export interface Curve {
  readonly name: string
  readonly color: string
  /** Calls per parcel, and mean staleness of lost entries in minutes. */
  readonly points: readonly (readonly [calls: number, minutes: number])[]
}

const SIZE = { width: 720, height: 400, left: 64, right: 24, top: 44, bottom: 52 }

/** Staleness against calls as an SVG, both from zero. */
export function plotCurves(title: string, curves: readonly Curve[]): string {
  const points = curves.flatMap((curve) => curve.points)
  const callsMax = Math.max(1, ...points.map(([calls]) => calls)) * 1.05
  const minutesMax = Math.max(1, ...points.map(([, minutes]) => minutes)) * 1.05
  const x = (calls: number) => SIZE.left + (calls / callsMax) * (SIZE.width - SIZE.left - SIZE.right)
  const y = (minutes: number) => SIZE.height - SIZE.bottom - (minutes / minutesMax) * (SIZE.height - SIZE.top - SIZE.bottom)
  const text = (atX: number, atY: number, anchor: string, words: string) =>
    `<text x="${round(atX)}" y="${round(atY)}" text-anchor="${anchor}">${words}</text>`
  const ticks = (max: number) => Array.from({ length: 6 }, (_, at) => roundTick(max / 5) * at).filter((tick) => tick <= max)
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" font-family="sans-serif" font-size="12" fill="#333">`,
    `<rect width="${SIZE.width}" height="${SIZE.height}" fill="#fff"/>`,
    `<g font-size="14">${text(SIZE.left, 22, 'start', title)}</g>`,
    ...ticks(minutesMax).flatMap((tick) => [
      `<path d="M${SIZE.left} ${round(y(tick))}H${SIZE.width - SIZE.right}" stroke="#ddd"/>`,
      text(SIZE.left - 8, y(tick) + 4, 'end', String(tick)),
    ]),
    ...ticks(callsMax).map((tick) => text(x(tick), SIZE.height - SIZE.bottom + 18, 'middle', String(tick))),
    text((SIZE.left + SIZE.width) / 2, SIZE.height - 12, 'middle', 'calls per parcel'),
    `<g transform="rotate(-90 18 ${SIZE.height / 2})">${text(18, SIZE.height / 2, 'middle', 'mean staleness of lost entries, minutes')}</g>`,
    ...curves.flatMap(({ name, color, points: own }, at) => [
      `<polyline fill="none" stroke="${color}" stroke-width="2" points="${own.map(([calls, minutes]) => `${round(x(calls))},${round(y(minutes))}`).join(' ')}"/>`,
      ...own.map(([calls, minutes]) => `<circle cx="${round(x(calls))}" cy="${round(y(minutes))}" r="3" fill="${color}"/>`),
      `<rect x="${SIZE.width - 250}" y="${SIZE.top + at * 18}" width="12" height="12" fill="${color}"/>`,
      text(SIZE.width - 232, SIZE.top + at * 18 + 10, 'start', name),
    ]),
    '</svg>',
  ]
  return `${lines.join('\n')}\n`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function roundTick(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step))
  return [1, 2, 5, 10].map((part) => part * power).find((tick) => tick >= step) ?? step
}
