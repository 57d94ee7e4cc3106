import { expect, test } from 'vitest'
import { linkCommands } from '../../../src/console/portal/command-links.ts'
import { charactersOf, createAddresses, html } from '../../../src/console/portal/html.ts'
import { commandsOn, messagesInSource, WITHOUT_PAGE } from '../../support/portal/commands-on.ts'

const to = createAddresses('/relay')
const linked = (text: string, scope: 'admin' | 'status' = 'admin') => charactersOf(linkCommands(html`<p>${text}</p>`, to, scope))

test('each command in a message leads to a page, unless no page is known to do the same', () => {
  const found = messagesInSource().flatMap((message) => commandsOn(linked(message)))
  expect(messagesInSource().length).toBeGreaterThan(30)
  expect(found.filter((command) => !WITHOUT_PAGE.test(command))).toEqual([])
})

test.each([
  ['Correct it, then reload: parcel-relay reload.', '<p>Correct it, then reload: <a href="/relay/reload">Reload the config</a>.</p>'],
  ['See: parcel-relay endpoints show my.shop.', '<p>See: <a href="/relay/webhooks?name=my.shop">the page of my.shop</a>.</p>'],
  ['Or: parcel-relay endpoints remove my.shop.', '<p>Or: <a href="/relay/webhooks?name=my.shop">remove my.shop</a>.</p>'],
  ['Ask: parcel-relay inbox --refused? Then', '<p>Ask: <a href="/relay/inbox/refusals">Refused pushes</a>? Then</p>'],
  ['Send: parcel-relay report, and', '<p>Send: <a href="/relay/report">Carrier report</a>, and</p>'],
  ['times: GET /relay/tallies?kind=missed.', '<p>times: <a href="/relay/docs#get-relay-tallies">GET /relay/tallies?kind=missed</a>.</p>'],
  ['Stop it and run "parcel-relay prune --compact".', '<p>Stop it and run &quot;<code>parcel-relay prune --compact</code>&quot;.</p>'],
  ['Compare: parcel-relay fingerprint --key-file FILE.', '<p>Compare: <code>parcel-relay fingerprint --key-file FILE</code>.</p>'],
])('a command becomes a link to the page that does the same: %s', (text, page) => {
  expect(linked(text)).toBe(page)
})

test('a command that stands alone as code becomes a link, and one that is shown on purpose stays', () => {
  const page = html`<p><code>parcel-relay reload</code> <code class="command">parcel-relay reload</code></p>`
  expect(charactersOf(linkCommands(page, to, 'admin'))).toBe(
    '<p><a href="/relay/reload">Reload the config</a> <code class="command">parcel-relay reload</code></p>',
  )
})

test('whoever may not see a page gets no link to it', () => {
  expect(linked('Look: parcel-relay reload', 'status')).toBe('<p>Look: <code>parcel-relay reload</code></p>')
  expect(linked('Look: parcel-relay status', 'status')).toContain('<a href="/relay/">Overview</a>')
})

test('text that was received or typed stays as it is', () => {
  const text = 'parcel-relay reload'
  const page = html`<pre>${text}</pre><span class="answer">${text}</span><textarea>${text}</textarea><q class="said">${text}</q>`
  expect(charactersOf(linkCommands(page, to, 'admin'))).toBe(charactersOf(page))
})
