// Every page works without this script. It shows times in the viewer's zone on request, copies text, and keeps open pages up to date.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
const isLocal = () => localStorage.getItem('zone') !== 'UTC' && zone !== 'UTC'
const format = (options) => new Intl.DateTimeFormat('en-GB', { timeZone: isLocal() ? zone : 'UTC', hourCycle: 'h23', ...options })
const minutes = { hour: '2-digit', minute: '2-digit' }
const clock = { ...minutes, second: '2-digit' }
const root = new URL('..', document.currentScript.src)
/** The server's own content of each part that the script keeps up to date. */
const written = new Map([...document.querySelectorAll('[data-live]')].map(({ id, innerHTML }) => [id, innerHTML]))

function showTimes(part) {
  const named = format({ timeZoneName: 'short' })
  const nameAt = (when) => named.formatToParts(when).find(({ type }) => type === 'timeZoneName').value
  const name = nameAt(new Date())
  for (const span of part.querySelectorAll('.zone')) span.textContent = name
  const day = format({ day: 'numeric', month: 'short' })
  const year = format({ year: 'numeric' })
  const utcDay = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short' })
  for (const time of part.querySelectorAll('time[data-f]')) {
    const when = new Date(time.dateTime)
    // The server wrote the day where UTC needs it; the viewer's zone may have another day.
    time.dataset.day ??= /^\d+ [A-Z]/.test(time.textContent)
    const hasDay = time.dataset.day === 'true' || day.format(when) !== utcDay.format(when)
    const seconds = time.dataset.f === 'day' || (time.dataset.f === 'at' && !hasDay)
    const isOtherYear = year.format(when) !== year.format(new Date())
    const dayName = isOtherYear ? `${day.format(when)} ${year.format(when)} ` : `${day.format(when)} `
    // The page names the zone as it is called today; in the other half of the year it may have another name.
    const own = nameAt(when) === name ? '' : ` ${nameAt(when)}`
    if (/^(at|hm|day)$/.test(time.dataset.f))
      time.textContent = (hasDay ? dayName : '') + format(seconds ? clock : minutes).format(when) + own
    // Pages about one thing keep UTC, and show the viewer's own time after it.
    if (time.dataset.f === 'full') time.dataset.own = isLocal() ? `${format(clock).format(when)} ${nameAt(when)}` : ''
  }
}

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
    showTimes(document)
  })
}
// If no public address is configured, others can open the one in the address bar.
for (const address of document.querySelectorAll('#share-url')) {
  if (address.textContent.startsWith('/')) address.textContent = location.origin + address.textContent
}
showTimes(document)
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
  const words = staleSince === null ? '' : `Not up to date since ${format(clock).format(staleSince)}`
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
