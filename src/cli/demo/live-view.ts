import { clearScreenDown, moveCursor } from 'node:readline'
import { styleText } from 'node:util'
import type { Happening } from './happenings.ts'
import { type Mark, type ParcelPicture, type Picture, totalsOf } from './picture.ts'
import type { View } from './view.ts'
import { presentHappening, presentTotals } from './wording.ts'

const GLYPHS: Readonly<Record<Mark, string>> = { pushed: '●', polled: '◆', missing: '○' }
const LEGEND = '● pushed   ◆ lost, found by a poll   ○ not known yet   ✓ complete'
const NEWS_SHOWN = 5
const BAR_WIDTH = 30
/** A tracking number, up to 14 marks, the tick and a gap. */
const CELL_WIDTH = 34

/** For terminals: one picture, drawn again and again in the same place. */
export function createLiveView(output: NodeJS.WriteStream): View {
  let drawn: readonly string[] = []
  let news: readonly string[] = []

  const erase = () => {
    if (drawn.length === 0) return
    moveCursor(output, 0, -drawn.length)
    clearScreenDown(output)
  }
  const draw = () => void (drawn.length > 0 && output.write(`${drawn.map(coloured).join('\n')}\n`))

  return {
    note(text) {
      erase()
      output.write(`${text}\n`)
      draw()
    },
    show(picture, happenings: readonly Happening[]) {
      news = [...news, ...happenings.map(presentHappening)].slice(-NEWS_SHOWN)
      const size = { columns: output.columns ?? 80, rows: output.rows ?? 24 }
      erase()
      drawn = layOut(picture, news, size)
      draw()
    },
    end: (text) => void output.write(`\n${text}\n`),
  }
}

/** At most one line less than the terminal has, none wider than it: so it can always be erased. */
export function layOut(picture: Picture, news: readonly string[], { columns, rows }: { readonly columns: number; readonly rows: number }) {
  const { complete, parcels } = totalsOf(picture)
  const full = parcels === 0 ? 0 : Math.floor((complete / parcels) * BAR_WIDTH)
  const [headline, ...counts] = presentTotals(picture)
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}  ${headline}`
  const top = ['', bar, ...filledUp(counts, columns - 1), LEGEND]
  const across = Math.max(1, Math.floor(columns / CELL_WIDTH))
  const tail = ['', ...news, ...Array.from({ length: NEWS_SHOWN - news.length }, () => '')]
  const down = Math.max(0, rows - 1 - top.length - tail.length)
  const grid = gridOf(picture.parcels, across, down)
  return [...top, ...grid, ...tail].slice(0, rows - 1).map((line) => line.slice(0, columns - 1))
}

/** As many parts on a line as fit. */
function filledUp(parts: readonly string[], width: number): readonly string[] {
  const lines: string[] = []
  for (const part of parts) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + part.length + 3 <= width) lines.splice(-1, 1, `${last} · ${part}`)
    else lines.push(part)
  }
  return lines
}

/** Those that are not complete go first when there is no room for all. */
function gridOf(parcels: readonly ParcelPicture[], across: number, down: number): readonly string[] {
  const room = across * down
  const shown = parcels.length <= room ? parcels : parcels.toSorted((a, b) => Number(a.complete) - Number(b.complete)).slice(0, room)
  const height = Math.ceil(shown.length / across)
  return Array.from({ length: height }, (_, row) =>
    Array.from({ length: across }, (__, column) => cellOf(shown[column * height + row])).join(''),
  )
}

function cellOf(parcel: ParcelPicture | undefined): string {
  if (parcel === undefined) return ''
  const marks = parcel.events.map(({ mark }) => GLYPHS[mark]).join('')
  return `${parcel.trackingNumber} ${marks}${parcel.complete ? ' ✓' : ''}`.padEnd(CELL_WIDTH).slice(0, CELL_WIDTH)
}

function coloured(line: string): string {
  return line
    .replace(/●+/g, (marks) => styleText('green', marks))
    .replace(/◆+/g, (marks) => styleText('yellow', marks))
    .replace(/○+/g, (marks) => styleText('red', marks))
    .replace(/✓|█+/g, (marks) => styleText('greenBright', marks))
}
