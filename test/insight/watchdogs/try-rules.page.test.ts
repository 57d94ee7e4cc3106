import { describe, expect, test } from 'vitest'
import { NO_FORM } from '../../../src/console/portal/form.ts'
import { watchdogPages } from '../../../src/insight/watchdogs/watchdogs.page.ts'
import { pushBody } from '../../support/history/builders.ts'
import { createVisitor, loggedInAt } from '../../support/portal/portal-visitor.ts'
import { visitAt } from '../../support/portal/visit.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { push, SHOP } from '../../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../../support/relay/relay-of-file.ts'
import { HOUR_MS, NO_CARRIER } from '../../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER, { serve: { fetchUnknown: false } })
const own = idsOfTest()
const loggedIn = () => loggedInAt(ofFile().internalUrl)

async function scanned(id: string, status: string, atMs: number): Promise<void> {
  const body = pushBody({ status, detailedStatus: status, eventTime: new Date(atMs).toISOString(), trackingIds: [id] })
  expect((await push(ofFile().publicUrl, body)).status).toBe(200)
}

const words = (page: string) => page.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
const tried = (page: string) => words(/<h2 id="try">[\s\S]*?<\/details>/.exec(page)?.[0] ?? '')

describe('the form to try rules', () => {
  test('says what rules would have said of the stored histories, keeps what was typed, and stores nothing', async () => {
    const [late, over] = [own('1001'), own('1002')]
    await scanned(late, 'Ingested', Date.now() - 5 * HOUR_MS)
    await scanned(over, 'Ingested', Date.now() - 9 * HOUR_MS)
    await scanned(over, 'TerminalArrived', Date.now() - HOUR_MS)
    const operate = await operatorOf(ofFile())
    const stored = async () => {
      const [feed, breaches, audit] = await Promise.all(
        ['/relay/events?after=0', '/relay/watchdogs/breaches', '/relay/audit'].map((path) => operate('GET', path)),
      )
      return [feed?.body, breaches?.body, audit?.body]
    }
    const before = await stored()
    const visitor = await loggedIn()
    expect((await visitor.get('/parcels')).text).toContain('href="/watchdogs"')
    const rules = 'watchdogs:\n  - { name: "a-b", when: { status: [Ingested] }, notWithin: 2h } # <two>\n'
    const { status, text } = await visitor.post('/watchdogs/try', { rules, since: '30d' })
    expect(status).toBe(200)
    expect(tried(text)).toContain('In 30d, a-b: 2 times.')
    expect(tried(text)).toMatch(new RegExp(`${late} a-b \\S+ would last`))
    expect(tried(text)).toMatch(new RegExp(`${over} a-b (?!.*${over} a-b \\S+ would last)`))
    expect(text).toContain('name: &quot;a-b&quot;, when: { status: [Ingested] }, notWithin: 2h } # &lt;two&gt;\n</textarea>')
    expect(text).toMatch(/<details class="plain" open><summary>What would rules/)
    const none = await visitor.post('/watchdogs/try', { rules, since: '1m' })
    expect(tried(none.text)).toContain('No parcel would have been found stalled.')
    expect(await stored()).toEqual(before)
  })

  test.each([
    [
      { rules: '- { name: a, when: { status: [Ingested] } }\n- { name: b, when: {} }' },
      'Line 2: when must name a status or a detailedStatus',
    ],
    [{ rules: '- name: a\n  when: { status: [A] }\n  notWithin: soon' }, 'Line 3: notWithin must be a duration'],
    [{ rules: 'watchdogs:\n- nam: a\n  when: { status: [A] }' }, 'Line 2: There is no member “nam” here'],
    [{ rules: '- { name: a, when: { status: [A] }, notWithin: 1h, notBy: "22:00" }' }, 'Line 1: notBy cannot stand beside notWithin'],
    [{ rules: '- name: a\n\twhen: x' }, 'Line 2: this is not expected here'],
    [{ rules: '- { name: a, when: { status: [A] }' }, 'a closing } or ] is missing'],
    [{ rules: 'name: a' }, 'Write a list of rules'],
    [{ rules: '' }, 'Write a list of rules'],
    [{ rules: '- *one' }, 'text that begins with * must be in quotes'],
    [{ rules: '- __proto__: a\n  name: a\n  when: { status: [A] }' }, 'Line 1: There is no member “__proto__” here'],
    [{ since: 'ever' }, 'Write a duration such as 30d, at most 366d.'],
    [{ since: '367d' }, 'Write a duration such as 30d, at most 366d.'],
    [{ since: '' }, 'Write a duration such as 30d, at most 366d.'],
  ])('what is wrong in %o is said beside its field, with its line', async (wrong, sentence) => {
    const fields = { rules: '- { name: a, when: { status: [Ingested] } }', since: '30d', ...wrong }
    const { status, text } = await (await loggedIn()).post('/watchdogs/try', fields)
    const shown = text
      .split('class="err"')[1]
      ?.split('</span>')[0]
      ?.replaceAll(/&quot;(.*?)&quot;/g, '“$1”')
    expect([status, shown]).toEqual([400, expect.stringContaining(sentence)])
    expect(text.split('class="err"')[0]).toContain('since' in wrong ? 'id="since"' : 'aria-invalid="true" class="code" id="rules"')
    expect(text).toMatch(/<details class="plain" open><summary>What would rules/)
  })

  test('only operators may send it, from the portal itself; as a link it leads to the page', async () => {
    const [visitor, reader] = [await loggedIn(), await loggedInAt(ofFile().internalUrl, SHOP)]
    const fields = { rules: '- { name: a, when: { status: [Ingested] } }', since: '30d' }
    expect((await reader.post('/watchdogs/try', fields)).status).toBe(403)
    expect((await reader.get('/parcels')).text).not.toContain('href="/watchdogs"')
    expect((await visitor.post('/watchdogs/try', fields, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await createVisitor(ofFile().internalUrl).post('/watchdogs/try', fields)).status).toBe(401)
    expect((await visitor.get('/watchdogs/try')).headers.get('location')).toBe('/watchdogs')
  })
})

/** The answer of the page to a form, of a store with so many parcels, which are all stalled once. */
async function answerOf(parcels: number, fields: Readonly<Record<string, string>>) {
  const asked: (number | null)[] = []
  const manageWatchdogs = {
    view: async () => ({ rules: [], waiting: 0, heldSinceMs: null }),
    stalled: async () => null,
    list: async () => ({ breaches: [], next: null }),
    async tryRules(_rules: unknown, _forMs: number, after: number | null) {
      asked.push(after)
      const [from, to] = [(after ?? 0) + 1, Math.min(parcels, (after ?? 0) + 250)]
      const ids = Array.from({ length: Math.max(0, to - from + 1) }, (_, nth) => from + nth)
      const breaches = ids.map((id) => ({ rule: 'a', identifiers: [`P${id}`], sinceMs: id, endedAtMs: null }))
      return { parcels: ids.length, breaches, next: to === parcels ? null : to }
    },
  }
  const route = watchdogPages({ manageWatchdogs }).find(({ method }) => method === 'post') ?? expect.fail('no form')
  const get = (name: string) => fields[name] ?? ''
  const answer = await route.answer({ ...visitAt(''), form: { ...NO_FORM, get } })
  return { asked, page: 'page' in answer ? answer.page : '' }
}

test('a form looks at a bounded number of parcels, shows the first breaches, and offers to look on', async () => {
  const fields = { rules: '- { name: a, when: { status: [A] } }', since: '30d' }
  const first = await answerOf(5600, fields)
  expect(first.asked).toHaveLength(20)
  expect(tried(first.page)).toContain('In 30d, a: 5,000 times. 5,000 parcels were looked at, and there are more. The first 100 are shown.')
  expect(first.page.match(/<th scope="row"/g)).toHaveLength(100)
  const [, next = ''] = /name="after" value="(\d+)"/.exec(first.page) ?? []
  const second = await answerOf(5600, { ...fields, after: next })
  expect(second.asked).toEqual([5000, 5250, 5500])
  expect(tried(second.page)).toContain('600 parcels were looked at.')
  expect(second.page).not.toContain('name="after"')
})
