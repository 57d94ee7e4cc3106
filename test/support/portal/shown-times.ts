import type { Page } from 'playwright-core'

/** A time that a page shows: the instant, the text and its tooltip, or a field with a time. */
interface ShownTime {
  readonly datetime: string
  readonly form: string
  readonly text: string
  readonly title: string
}

interface Found {
  readonly times: readonly ShownTime[]
  /** Texts with a time, or the name of UTC, outside all of these. */
  readonly strays: readonly string[]
  /** The names that the page calls its zone by. */
  readonly zones: readonly string[]
}

// It runs in the page. What was received is shown as it came, in `pre`, `code` and marked texts.
const LOOK = `(() => {
  const TIME = /\\b\\d{1,2}:\\d\\d\\b|\\b\\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\\b|\\b\\d{4}-\\d\\d-\\d\\d|(?:\\d|\\() ?UTC\\b/
  const VERBATIM = 'pre, code, script, style, textarea, time, .zone, .said, .answer, .verbatim'
  const strays = []
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
    if (TIME.test(node.data) && node.parentElement.closest(VERBATIM) === null) strays.push(node.data.trim())
  for (const element of document.querySelectorAll('[title], [aria-label], [data-l], [placeholder]')) {
    if (element.matches('time')) continue
    for (const name of ['title', 'aria-label', 'data-l', 'placeholder'])
      if (TIME.test(element.getAttribute(name) ?? '')) strays.push(element.getAttribute(name))
  }
  const times = [...document.querySelectorAll('time')].map((time) => ({
    datetime: time.dateTime, form: time.dataset.f, text: time.textContent, title: time.title
  }))
  return { times, strays, zones: [...new Set([...document.querySelectorAll('.zone')].map((zone) => zone.textContent))] }
})()`

/** Where the clocks of a zone stand at an instant, in minutes ahead of UTC. Written down here, so that no library of zones proves itself. */
export interface Zone {
  readonly name: string
  readonly minutesAt: (atMs: number) => number
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The clock of a zone at an instant: day, such as `5 Nov`, year, and time of day to the second. */
export function clockIn(zone: Zone, atMs: number) {
  const iso = new Date(atMs + zone.minutesAt(atMs) * 60_000).toISOString()
  const day = `${Number(iso.slice(8, 10))} ${MONTHS[Number(iso.slice(5, 7)) - 1]}`
  return { day, year: iso.slice(0, 4), clock: iso.slice(11, 19), field: iso.slice(0, 16) }
}

/** Lists what a page shows in another zone than `zone`. */
export async function timesInOtherZones(page: Page, zone: Zone, nowMs: number): Promise<readonly string[]> {
  const { times, strays, zones } = await page.evaluate<Found>(LOOK)
  const wrong = times
    .filter((time) => !isIn(zone, time, nowMs))
    .map((time) => `${time.text} | ${time.title} | ${time.datetime} ${time.form}`)
  return [...strays, ...wrong, ...(zones.length > 1 ? [zones.join()] : [])].map((text) => `${new URL(page.url()).pathname}: ${text}`)
}

function isIn(zone: Zone, { datetime, form, text, title }: ShownTime, nowMs: number): boolean {
  const { day, year, clock } = clockIn(zone, Date.parse(datetime))
  const isToday = clockIn(zone, nowMs).day === day
  const tells = (shown: string) => shown.includes(clock) && shown.includes(`${day} ${year}`)
  if (!(form === 'full' ? tells(text) : tells(title)) || title.includes('UTC') || text.includes('UTC')) return false
  if (form === 'at' || form === 'hm') return text.includes(clock.slice(0, 5)) && text.includes(day) === !isToday
  if (form === 'hms' || form === 'day') return text.includes(clock)
  if (form === 'hour') return text.startsWith(clock.slice(0, 5))
  return form === 'full' || form === 'rel'
}
