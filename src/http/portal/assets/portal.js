// Small helps; every page works without them. Times in the viewer's zone on request, copy buttons, and what has changed on an open page.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
const isLocal = () => localStorage.getItem('zone') !== 'UTC' && zone !== 'UTC'
const format = (options) => new Intl.DateTimeFormat('en-GB', { timeZone: isLocal() ? zone : 'UTC', hourCycle: 'h23', ...options })
const minutes = { hour: '2-digit', minute: '2-digit' }
const clock = { ...minutes, second: '2-digit' }
const root = new URL('..', document.currentScript.src)
/** What the server wrote into each part that is kept up to date. */
const written = new Map([...document.querySelectorAll('[data-live]')].map(({ id, innerHTML }) => [id, innerHTML]))

function showTimes(part) {
  const name = format({ timeZoneName: 'short' })
    .formatToParts(new Date())
    .find(({ type }) => type === 'timeZoneName').value
  for (const span of part.querySelectorAll('.zone')) span.textContent = name
  const day = format({ day: 'numeric', month: 'short' })
  const utcDay = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short' })
  for (const time of part.querySelectorAll('time[data-f]')) {
    const when = new Date(time.dateTime)
    // The server wrote the day where it is needed; here it may be another one.
    time.dataset.day ??= /^\d+ [A-Z]/.test(time.textContent)
    const hasDay = time.dataset.day === 'true' || day.format(when) !== utcDay.format(when)
    const seconds = time.dataset.f === 'day' || (time.dataset.f === 'at' && !hasDay)
    if (/^(at|hm|day)$/.test(time.dataset.f))
      time.textContent = (hasDay ? `${day.format(when)} ` : '') + format(seconds ? clock : minutes).format(when)
    // UTC stays on pages about one thing; the viewer's own time stands behind it.
    if (time.dataset.f === 'full') time.dataset.own = isLocal() ? `${format(clock).format(when)} ${name}` : ''
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
// Where no public address is configured, the one in the address bar is what others can open.
for (const address of document.querySelectorAll('#share-url')) {
  if (address.textContent.startsWith('/')) address.textContent = location.origin + address.textContent
}
showTimes(document)
offerCopies(document)

// The server says only that something has changed. The page is then loaded again, and what is marked in it swapped.
const REST_MS = 2000
let stream = null
let isStreaming = false
/** Whether something may have changed while nothing was heard. */
let isBehind = false
let due = null
let loadedAt = 0

function showStreaming(isOn) {
  isStreaming = isOn
  for (const line of document.querySelectorAll('#asof')) {
    line.querySelector('a').hidden = isOn
    line.querySelector('[data-streaming]').hidden = !isOn
  }
}

/** What somebody reads, opened or works with stays as it is. */
function isInUse(part) {
  const selection = getSelection()
  const isSelected = selection !== null && !selection.isCollapsed && selection.containsNode(part, true)
  return isSelected || part.contains(document.activeElement) || part.querySelector('details[open]') !== null
}

async function load() {
  due = null
  loadedAt = Date.now()
  const answer = await fetch(location.href, { headers: { 'Parcel-Relay-Live': '1' } }).catch(() => null)
  // Somewhere else, such as the login, is not this page.
  if (!answer?.ok || answer.redirected) return
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
  document.title = fresh.title
  for (const part of document.querySelectorAll('[data-live]')) {
    const next = fresh.getElementById(part.id)
    if (next === null || next.innerHTML === written.get(part.id) || isInUse(part)) continue
    written.set(part.id, next.innerHTML)
    part.replaceChildren(...next.childNodes)
    showTimes(part)
    offerCopies(part)
  }
  showStreaming(isStreaming)
}

function loadSoon() {
  if (due === null) due = setTimeout(load, Math.max(0, loadedAt + REST_MS - Date.now()))
}

/** One stream a tab, and none while it is hidden: a browser opens six connections to a server. */
function follow() {
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
  stream.addEventListener('error', () => {
    isBehind = true
    showStreaming(false)
  })
}

if (document.getElementById('side-links')) {
  document.addEventListener('visibilitychange', follow)
  // Kept when somebody goes on, a page could be shown again as it was.
  addEventListener('pagehide', () => stream?.close())
  follow()
}
