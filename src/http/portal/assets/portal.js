// Small helps; every page works without them. Times in the viewer's zone on request, copy buttons, the live line.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
const isLocal = () => localStorage.getItem('zone') !== 'UTC' && zone !== 'UTC'
const format = (options) => new Intl.DateTimeFormat('en-GB', { timeZone: isLocal() ? zone : 'UTC', hourCycle: 'h23', ...options })
const minutes = { hour: '2-digit', minute: '2-digit' }
const clock = { ...minutes, second: '2-digit' }

function showTimes() {
  const name = format({ timeZoneName: 'short' })
    .formatToParts(new Date())
    .find(({ type }) => type === 'timeZoneName').value
  for (const span of document.querySelectorAll('.zone')) span.textContent = name
  const day = format({ day: 'numeric', month: 'short' })
  const utcDay = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short' })
  for (const time of document.querySelectorAll('time[data-f]')) {
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

for (const button of document.querySelectorAll('[data-zone]')) {
  button.hidden = zone === 'UTC'
  button.addEventListener('click', () => {
    localStorage.setItem('zone', isLocal() ? 'UTC' : 'own')
    showTimes()
  })
}
showTimes()

// Where no public address is configured, the one in the address bar is what others can open.
for (const address of document.querySelectorAll('#share-url')) {
  if (address.textContent.startsWith('/')) address.textContent = location.origin + address.textContent
}

for (const button of document.querySelectorAll('[data-copy]')) {
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
