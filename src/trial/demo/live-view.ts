import { clearLine, moveCursor } from 'node:readline'
import { styleText } from 'node:util'
import type { Sandbox, SandboxParcel } from '../sandbox/control-api.ts'
import type { Shop, Subscriber } from './apps.ts'
import {
  type Happening,
  type HappeningKind,
  type Mark,
  type ParcelPicture,
  type Picture,
  pictureOf,
  type ReplicaNews,
  totalsOf,
  type View,
} from './picture.ts'

const GLYPHS: Readonly<Record<Mark, string>> = { pushed: '●', polled: '◆', missing: '○' }
const LEGEND = '● pushed   ◆ lost, found by a poll   ○ not known yet   ✓ complete'
const NEWS_SHOWN = 5
/** A terminal with fewer than `LOW_ROWS` rows shows only this many news lines, to leave room for the parcels and the commands. */
const NEWS_SHOWN_LOW = 2
const LOW_ROWS = 30
const BAR_WIDTH = 30
/** The width of a tracking number, up to 14 marks, the tick and a space, in characters. */
const CELL_WIDTH = 34

/**
 * Creates the view for terminals. It redraws the picture in place, line by line. It does not clear the screen, because many terminals would then save
 * every picture in their scrollback.
 */
export function createLiveView(output: NodeJS.WriteStream): View {
  let drawn: readonly string[] = []
  let news: readonly string[] = []
  let pinned: readonly string[] = []

  const toTop = () => void (drawn.length > 0 && moveCursor(output, 0, -drawn.length))
  const writeLines = (lines: readonly string[]) => {
    for (const line of lines) {
      output.write(line)
      clearLine(output, 1)
      output.write('\n')
    }
  }
  const draw = (lines: readonly string[]) => {
    writeLines(lines.map(coloured))
    const surplus = drawn.length - lines.length
    if (surplus > 0) {
      writeLines(Array.from({ length: surplus }, () => ''))
      moveCursor(output, 0, -surplus)
    }
    drawn = lines
  }

  return {
    note(text) {
      toTop()
      const lines = text.split('\n')
      writeLines(lines)
      // Redraw the picture below the note. There it covers what is left of the old picture.
      const picture = drawn
      drawn = []
      draw(picture)
    },
    pin(lines) {
      pinned = lines
    },
    show(picture, happenings: readonly Happening[]) {
      news = [...news, ...happenings.map(presentHappening)].slice(-NEWS_SHOWN)
      toTop()
      draw(layOut(picture, { news, pinned }, { columns: output.columns ?? 80, rows: output.rows ?? 24 }))
    },
    end: (text) => void output.write(`\n${text}\n`),
  }
}

interface Below {
  readonly news: readonly string[]
  /** Lines with commands to paste. They are below everything else. */
  readonly pinned: readonly string[]
}

/** Lays the picture out with one row and one column fewer than the terminal has, so that no line wraps or scrolls and the picture can be redrawn. */
export function layOut(picture: Picture, { news, pinned }: Below, { columns, rows }: { readonly columns: number; readonly rows: number }) {
  const { complete, parcels } = totalsOf(picture)
  const full = parcels === 0 ? 0 : Math.floor((complete / parcels) * BAR_WIDTH)
  const [headline, ...counts] = presentTotals(picture)
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}  ${headline}`
  const top = ['', bar, ...filledUp(counts, columns - 1), ...presentReplicas(picture), LEGEND]
  const across = Math.max(1, Math.floor(columns / CELL_WIDTH))
  const shown = rows < LOW_ROWS ? NEWS_SHOWN_LOW : NEWS_SHOWN
  const last = news.slice(-shown)
  // Show all commands or none, because a command that is cut off may do harm when it is pasted.
  const commands = pinned.some((line) => line.length >= columns) || pinned.length > rows / 3 ? [] : pinned
  const tail = ['', ...last, ...Array.from({ length: shown - last.length }, () => ''), ...(commands.length === 0 ? [] : ['', ...commands])]
  const down = Math.max(0, rows - 1 - top.length - tail.length)
  const grid = gridOf(picture.parcels, across, down)
  return [...top, ...grid, ...tail].slice(0, rows - 1).map((line) => line.slice(0, columns - 1))
}

/** Joins parts to lines, with as many parts per line as fit. */
function filledUp(parts: readonly string[], width: number): readonly string[] {
  const lines: string[] = []
  for (const part of parts) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + part.length + 3 <= width) lines.splice(-1, 1, `${last} · ${part}`)
    else lines.push(part)
  }
  return lines
}

/** Lays the parcels out in columns. If not all of them fit, shows incomplete parcels first, and says in the last line how many are not shown. */
function gridOf(parcels: readonly ParcelPicture[], across: number, down: number): readonly string[] {
  if (parcels.length > across * down) {
    const room = across * Math.max(0, down - 1)
    const first = parcels.toSorted((a, b) => Number(a.complete) - Number(b.complete)).slice(0, room)
    return [...gridOf(first, across, down), `and ${parcels.length - room} more parcels; enlarge the window to see them`].slice(0, down)
  }
  const height = Math.ceil(parcels.length / across)
  return Array.from({ length: height }, (_, row) =>
    Array.from({ length: across }, (__, column) => cellOf(parcels[column * height + row])).join(''),
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

/** How many happenings of each kind are printed. */
const SHOWN_MAX = 4
const TOTALS_EVERY_MS = 2000

/** Creates the view for files and pipes. It prints the first few happenings of each kind and, at most every two seconds, changed totals. */
export function createLineView(output: { write(text: string): unknown }, monotonicMs: () => number): View {
  const counts = new Map<HappeningKind, number>()
  let totals = ''
  let totalsAtMs = Number.NEGATIVE_INFINITY
  const line = (text: string) => void output.write(`${text}\n`)
  return {
    note: line,
    end: line,
    // Printed lines stay anyway, so there is nothing to pin.
    pin: () => undefined,
    show(picture, happenings) {
      for (const happening of happenings) {
        const count = (counts.get(happening.kind) ?? 0) + 1
        counts.set(happening.kind, count)
        if (count <= SHOWN_MAX) line(presentHappening(happening))
        if (count === SHOWN_MAX) line(presentElision(happening.kind))
      }
      const now = [presentTotals(picture).join(' · '), ...presentReplicas(picture)].join('\n')
      const { complete, parcels } = totalsOf(picture)
      if (now === totals || (complete < parcels && monotonicMs() - totalsAtMs < TOTALS_EVERY_MS)) return
      line(now)
      totals = now
      totalsAtMs = monotonicMs()
    },
  }
}

/** How many histories are requested at the same time. */
const AT_ONCE = 10
/** After this time the relay has polled every parcel once. */
const FIRST_POLLS_MS = 7000

/**
 * Returns a function that takes a picture of the carrier's and the relay's state. It requests the histories that still differ from the carrier's.
 * It requests none before the first polls, because a request for an unknown parcel makes the relay poll it.
 */
export function createLook(carrier: Pick<Sandbox, 'world'>, shop: Shop, subscriber: Pick<Subscriber, 'counts'>): () => Promise<Picture> {
  const histories = new Map<string, string>()
  const startedAtMs = performance.now()
  const askFor = async ({ trackingNumber, answers }: SandboxParcel) => {
    const found = await shop.histories(trackingNumber)
    // If a replica's history differs from the carrier's, take the replica's, so that the parcel counts as incomplete.
    const history = found.find((one) => one !== answers.en) ?? found[0] ?? null
    if (history !== null) histories.set(trackingNumber, history)
  }
  return async () => {
    const parcels = carrier.world.parcels()
    const asksNow = performance.now() - startedAtMs > FIRST_POLLS_MS
    const differing = asksNow ? parcels.filter(({ trackingNumber, answers }) => histories.get(trackingNumber) !== answers.en) : []
    for (let from = 0; from < differing.length; from += AT_ONCE) await Promise.all(differing.slice(from, from + AT_ONCE).map(askFor))
    return {
      // `parcels` was read before the requests. An event that happened during them would look polled while its push is still on its way.
      parcels: parcels.map((parcel) => pictureOf(parcel, histories.get(parcel.trackingNumber) ?? null)),
      replicas: await shop.news(),
      subscriber: subscriber.counts(),
    }
  }
}

const WORDS: Readonly<Record<HappeningKind, string>> = {
  pushed: 'push received    ',
  lost: 'push lost        ',
  filled: 'filled by a poll ',
  complete: 'history complete ',
  relayed: 'subscriber got   ',
  stalled: 'parcel stalled   ',
  recovered: 'parcel goes on   ',
}

function presentHappening({ kind, trackingNumber, about }: Happening): string {
  return `${WORDS[kind]} ${trackingNumber}  ${about}`
}

/** Writes the line that says that further happenings of a kind get no line of their own. */
function presentElision(kind: HappeningKind): string {
  return `${WORDS[kind]} (more of these are only counted)`
}

/**
 * Returns the parts of the line of totals. `pushes received` and `duplicates` are metrics of the relay. The subscriber counts its own events. The
 * other numbers compare the carrier with the relay. The relay's metric of missed pushes also counts late pushes, so it may be higher than `gaps
 * filled by polls`.
 */
function presentTotals(picture: Picture): readonly [string, ...string[]] {
  const { complete, parcels, lost, filled, pushes } = totalsOf(picture)
  const { events, wrong } = picture.subscriber
  return [
    `histories complete ${complete}/${parcels}`,
    `pushes received ${pushes.received}`,
    `lost by the carrier ${lost}`,
    `gaps filled by polls ${filled}`,
    `duplicates ${pushes.duplicates}`,
    `sent to the subscriber ${events}`,
    ...(wrong === 0 ? [] : [`with a wrong signature ${wrong}`]),
  ]
}

const DUTIES = [
  ['poller', 'polls'],
  ['dispatcher/', 'delivers'],
  ['janitor', 'keeps house'],
] as const

/** Returns a line for each replica; no lines if there is only one relay. */
function presentReplicas({ replicas }: Picture): readonly string[] {
  return replicas.length < 2 ? [] : replicas.map(presentReplica)
}

function presentReplica({ name, isRunning, pushes, roles }: ReplicaNews): string {
  const duties = DUTIES.filter(([role]) => roles.some((held) => held.startsWith(role))).map(([, duty]) => duty)
  const state = !isRunning ? 'has ended' : duties.length === 0 ? 'has no role' : duties.join(', ')
  return `  ${name}: received ${pushes.received} of the pushes, ${state}`
}
