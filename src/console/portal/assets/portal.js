// Every page works without this script. It shows times in the viewer's zone on request, copies text, and keeps open pages up to date.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
const isLocal = () => localStorage.getItem('zone') !== 'UTC' && zone !== 'UTC'
const root = new URL('..', document.currentScript.src)
/** The server's own content of each part that the script keeps up to date. */
const written = new Map([...document.querySelectorAll('[data-live]')].map(({ id, innerHTML }) => [id, innerHTML]))
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** Reads instants in the zone that the page shows. */
let { clockAt, fieldAt } = readIn('UTC')

function readIn(timeZone) {
  const long = { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' }
  const parts = new Intl.DateTimeFormat('en-GB', { timeZone, hourCycle: 'h23', timeZoneName: 'short', ...long })
  const fields = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  return {
    clockAt(when) {
      const at = Object.fromEntries(parts.formatToParts(when).map(({ type, value }) => [type, value]))
      const minutes = `${at.hour}:${at.minute}`
      // In British English only September has four letters.
      return { day: `${at.day} ${at.month.slice(0, 3)}`, year: at.year, minutes, seconds: `${minutes}:${at.second}`, zone: at.timeZoneName }
    },
    /** The text of a field for a time, such as `2026-11-25T14:41`. */
    fieldAt: (when) => fields.format(when).replace(' ', 'T'),
  }
}

function fullAt(when) {
  const { day, year, seconds, zone: name } = clockAt(when)
  const fraction = when % 1000 === 0 ? '' : when.toISOString().slice(19, 23)
  return `${day} ${year} ${seconds}${fraction} ${name}`
}

function showTimes(part) {
  const now = clockAt(new Date())
  for (const span of part.querySelectorAll('.zone')) span.textContent = now.zone
  const dayAt = ({ day, year }) => (year === now.year ? day : `${day} ${year}`)
  for (const time of part.querySelectorAll('time[data-f]')) {
    const when = new Date(time.dateTime)
    const at = clockAt(when)
    const { f: form, b: before } = time.dataset
    const isKnown = before === undefined ? form !== 'day' && dayAt(at) === now.day : dayAt(at) === dayAt(clockAt(new Date(before)))
    const day = isKnown ? '' : `${dayAt(at)} `
    // The page names the zone as it is called today; in the other half of the year it may have another name.
    const own = at.zone === now.zone ? '' : ` ${at.zone}`
    if (form === 'at') time.textContent = (isKnown ? at.seconds : day + at.minutes) + own
    if (form === 'day') time.textContent = day + at.seconds + own
    if (form === 'hm') time.textContent = `${day}${at.minutes} ${at.zone}`
    if (form === 'hms') time.textContent = `${day}${at.seconds} ${at.zone}`
    if (form === 'hour') time.textContent = at.minutes + own
    if (form === 'full') time.textContent = fullAt(when)
    time.title = time.title.replace(/^\d+ \w+ \d{4} [^,]+/, fullAt(when))
  }
}

/** The fields for times. Forms send them in UTC, as the server writes them. */
const timeFields = () => [...document.querySelectorAll('input[type="datetime-local"]')]

/** Returns the instants at which clocks in the shown zone show a text: one, or two when the clocks are put back. */
function instantsOf(text) {
  const asUtc = Date.parse(`${text}Z`)
  const minute = asUtc - (asUtc % MINUTE_MS)
  const ahead = (when) => Date.parse(`${fieldAt(when)}Z`) - when
  const both = [minute - ahead(minute - DAY_MS), minute - ahead(minute + DAY_MS)]
  const shown = both.filter((when) => fieldAt(when) === text.slice(0, 16))
  return (shown.length > 0 ? shown : both).map((when) => when + (asUtc % MINUTE_MS))
}

/** Reads a field as epoch milliseconds. Of the hour that comes twice, a range takes in both. Null: nothing is typed. */
function instantIn({ name, value }) {
  if (value === '') return null
  return name === 'to' ? Math.max(...instantsOf(value)) : Math.min(...instantsOf(value))
}

/** The seconds of a field whose time has some, such as `:05.250`. No zone changes them. */
function secondsOf(when) {
  return when % MINUTE_MS === 0 ? '' : new Date(when).toISOString().slice(16, 23)
}

function showZone() {
  const typed = timeFields().map((field) => [field, instantIn(field)])
  ;({ clockAt, fieldAt } = readIn(isLocal() ? zone : 'UTC'))
  for (const [field, when] of typed) if (when !== null) field.value = fieldAt(when) + secondsOf(when)
  showTimes(document)
}

addEventListener('formdata', ({ target, formData }) => {
  for (const field of timeFields()) {
    const when = field.form === target ? instantIn(field) : null
    if (when !== null) formData.set(field.name, new Date(when).toISOString().slice(0, when % MINUTE_MS === 0 ? 16 : 23))
  }
})

function offerCopies(part) {
  for (const button of part.querySelectorAll('[data-copy]')) {
    if (!navigator.clipboard) continue
    button.hidden = false
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent)
      button.textContent = 'Copied'
      setTimeout(() => {
        button.textContent = 'Copy'
      }, 2000)
    })
  }
}

for (const button of document.querySelectorAll('[data-zone]')) {
  button.hidden = zone === 'UTC'
  button.addEventListener('click', () => {
    localStorage.setItem('zone', isLocal() ? 'UTC' : 'own')
    showZone()
  })
}
// If no public address is configured, others can open the one in the address bar.
for (const address of document.querySelectorAll('#share-url')) {
  if (address.textContent.startsWith('/')) address.textContent = location.origin + address.textContent
}
// The browser may have kept what was typed, but until now the fields are in UTC.
for (const field of timeFields()) field.value = field.defaultValue
showZone()
offerCopies(document)

// The server says only that something has changed. The script then loads the page again and replaces the parts marked `data-live`.
const REST_MS = 2000
let stream = null
let isStreaming = false
/** Whether something may have changed while no stream was open. */
let isBehind = false
let due = null
let loadedAt = 0
let { title } = document
/** Since when the page may show what is no longer true; null: it is kept up to date. */
let staleSince = null
/** A stream that ends is opened again within seconds, and a page need not say so. */
const STALE_AFTER_MS = 5000
const RETRY_MS = 30_000

/** Says in the heading and in the tab that the page is not kept up to date, because somebody across the room reads only these. */
function showStale() {
  const words = staleSince === null ? '' : `Not up to date since ${clockAt(new Date(staleSince)).seconds}`
  document.title = words === '' ? title : `${words} · ${title}`
  document.querySelector('h1 .stale')?.remove()
  if (words === '') return
  const mark = document.createElement('small')
  mark.className = 'stale'
  mark.textContent = ` ${words}`
  document.querySelector('h1')?.append(mark)
}

function markStale() {
  staleSince ??= Date.now()
  showStale()
}

function showStreaming(isOn) {
  isStreaming = isOn
  for (const line of document.querySelectorAll('#asof')) {
    line.querySelector('a').hidden = isOn
    line.querySelector('[data-streaming]').hidden = !isOn
  }
}

/** Keeps a part as it is while somebody reads it, has opened it or works in it. */
function isInUse(part) {
  const selection = getSelection()
  const isSelected = selection !== null && !selection.isCollapsed && selection.containsNode(part, true)
  return isSelected || part.contains(document.activeElement) || part.querySelector('details[open]') !== null
}

async function load() {
  due = null
  loadedAt = Date.now()
  const answer = await fetch(location.href, { headers: { 'Parcel-Relay-Live': '1' } }).catch(() => null)
  // A redirect, for example to the login, gives another page.
  if (!answer?.ok || answer.redirected) return markStale()
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
  title = fresh.title
  if (isStreaming) staleSince = null
  // Each form has a new id in each page, which is no change.
  const plain = (text) => text?.replace(/ name="form" value="[^"]*"/g, '')
  for (const part of document.querySelectorAll('[data-live]')) {
    const next = fresh.getElementById(part.id)
    if (next === null || plain(next.innerHTML) === plain(written.get(part.id)) || isInUse(part)) continue
    written.set(part.id, next.innerHTML)
    part.replaceChildren(...next.childNodes)
    showTimes(part)
    offerCopies(part)
  }
  showStreaming(isStreaming)
  showStale()
}

function loadSoon() {
  if (due === null) due = setTimeout(load, Math.max(0, loadedAt + REST_MS - Date.now()))
}

/** Opens one stream per tab, and none while the tab is hidden, because a browser opens only six connections to a server. */
function openStream() {
  if (document.hidden) {
    stream?.close()
    stream = null
    isBehind = true
    showStreaming(false)
    return
  }
  if (stream !== null && stream.readyState !== EventSource.CLOSED) return
  const page = location.pathname.slice(root.pathname.length - 1)
  stream = new EventSource(new URL(`live?page=${encodeURIComponent(page)}`, root))
  stream.addEventListener('open', () => {
    showStreaming(true)
    if (isBehind) loadSoon()
    isBehind = false
  })
  stream.addEventListener('changed', loadSoon)
  stream.addEventListener('error', ({ target }) => {
    isBehind = true
    showStreaming(false)
    const endedAt = Date.now()
    const isRefused = target.readyState === EventSource.CLOSED
    setTimeout(
      () => {
        if (isStreaming || document.hidden) return
        staleSince ??= endedAt
        showStale()
      },
      isRefused ? 0 : STALE_AFTER_MS,
    )
    // The browser itself opens a stream again that has ended, but not one that was refused, as after the end of a session.
    if (isRefused) setTimeout(openStream, RETRY_MS)
  })
}

if (document.getElementById('side-links')) {
  document.addEventListener('visibilitychange', openStream)
  // Close the stream when the page is left: a browser may keep the page and show it again as it was.
  addEventListener('pagehide', () => stream?.close())
  openStream()
}
