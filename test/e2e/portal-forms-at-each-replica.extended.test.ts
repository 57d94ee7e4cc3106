import { globSync, readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { closeOpened, goodBody, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { formIn, keyIn } from '../support/portal/sent-form.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, push, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

afterAll(closeOpened)

/** The addresses of all forms, as the sources of the portal declare them. */
const FORMS = globSync(['src/console/portal/**/*.ts', 'src/upkeep/**/*.page.ts', 'src/insight/**/*.page.ts'])
  .flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/(?:postForm\(\s*|router\.post\()'([^']+)'/g)])
  .map(([, path = '']) => path)

/** Starts two replicas, each with roles that the other lacks. Each encrypts with a key that is the other's second. */
async function start() {
  const carrier = await openCarrier({
    status: (request, response) =>
      json(response, 200, goodBody.replace('370000000000000001', /[A-Z]{2}\d{6}/.exec(request.url ?? '')?.[0] ?? '')),
  })
  const [shop, operator] = [await receiverOfTest(), await receiverOfTest()]
  shop.answer(() => 503)
  const [one, two] = ['one', 'two'].map((key) => Buffer.alloc(32, key).toString('base64'))
  const sections = {
    ...(await onPostgres()),
    poll: { cron: '0 0 1 1 *' },
    delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] },
    operator: { url: operator.url, sharedKey: 'operator-key-for-tests' },
  }
  const start = (atRestKeys: unknown) => spawnRelay(writeConfig(temporaryFolder(), carrier.url, { ...sections, secrets: { atRestKeys } }))
  const replicas = [await start([one, two]), await start([two, one])] as const
  const operate = await operatorOf(replicas[0])
  const roles = async () => (await operate('GET', '/relay/replicas')).text
  await expect.poll(roles).toMatch(/"roles":\["(?:poller|janitor|dispatcher)[^[]*"roles":\["(?:poller|janitor|dispatcher)/)
  return { replicas, shop, operator }
}

interface Press {
  /** The page with the form. */
  readonly on: string
  readonly fields?: Readonly<Record<string, string>>
  /** What the page says to which the form leads. */
  readonly says: RegExp
  /** The order that the audit trail then has at the other replica; absent: the form orders nothing. */
  readonly order?: string
}

const wordsOf = (page: string) => page.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')

/** Uses the portal of one replica, and reads the audit trail of the other. */
async function person(own: string, other: string) {
  const visitor = await loggedInAt(own)
  const operate = await operatorOf({ internalUrl: other })
  const used = new Set<string>()
  const faults: string[] = []
  const orders = async () => {
    const { actions } = (await operate('GET', '/relay/audit?limit=100')).body as {
      readonly actions: readonly { readonly action: string }[]
    }
    return actions.map(({ action }) => action)
  }
  /** Sends the form for `path` as the page shows it. Returns the page to which it leads. */
  async function press(path: string, { on, fields = {}, says, order }: Press): Promise<string> {
    const page = on.startsWith('/') ? (await visitor.get(on)).text : on
    const before = (await orders()).filter((one) => one === order).length
    const { shown = '', ...hidden } = formIn(page, path)
    let answer = await visitor.post(path, { ...hidden, ...fields, ...(shown === '' ? {} : { shown: shown.replaceAll('&quot;', '"') }) })
    used.add(path.replace(/(?<=^\/(?:webhooks|deliveries|inbox|jobs)\/)\d+/, ':id').replace(/(?<=^\/parcels\/)\w+/, ':identifier'))
    const first = answer.status
    if (first === 303) answer = await visitor.get(answer.headers.get('location') ?? '')
    const words = wordsOf(answer.text)
    if (answer.status >= 400 || !says.test(words)) faults.push(`${path}: ${first}, ${answer.status}: ${words}`)
    if (order !== undefined && (await orders()).filter((one) => one === order).length === before) faults.push(`${path}: no ${order}`)
    return answer.text
  }
  return { visitor, used, faults, press }
}

type Receiver = Awaited<ReturnType<typeof receiverOfTest>>
type Person = Awaited<ReturnType<typeof person>>

/** Uses the forms of webhooks and of their deliveries. `shop` answers each push with 503. */
async function useWebhooks({ visitor, press }: Person, name: string, shop: Receiver, publicUrl: string) {
  const { url } = shop
  const added = await press('/webhooks/new', {
    on: '/webhooks/new',
    fields: { url, name, events: 'entry' },
    says: / is added/,
    order: 'endpoint.added',
  })
  const on = /\/webhooks\/\d+(?=\/test")/.exec(added)?.[0] ?? ''
  const id = on.replace('/webhooks/', '')
  await press(`${on}/test`, { on, says: /The test was refused: 503/, order: 'endpoint.tested' })
  const fields = { url, name, events: 'entry', rate: '5' }
  await press(`${on}/edit`, { on: `${on}/edit`, fields, says: /Rate 5 a second/, order: 'endpoint.changed' })
  const rotated = await press(`${on}/key`, { on, says: /has a new key/, order: 'endpoint.key_replaced' })
  expect(keyIn(rotated)).not.toBe(null)
  await press(`${on}/new-key-now`, { on, says: /Shared key Fingerprint/, order: 'endpoint.key_replaced' })
  await press(`${on}/disable`, { on, says: /Nothing is sent\./, order: 'endpoint.changed' })
  await press(`${on}/enable`, { on, says: /It is sent each new event\./, order: 'endpoint.changed' })

  await push(publicUrl, pushBody({ trackingIds: [name] }))
  const list = async () => (await visitor.get(`/deliveries?endpoint=${id}`)).text
  await expect.poll(list).toMatch(/retrying/)
  const delivery = /\/deliveries\/\d+/.exec(await list())?.[0] ?? ''
  const words = async () => wordsOf((await visitor.get(delivery)).text)
  await press(`${delivery}/retry`, { on: delivery, says: /The next attempt is due|after 2 attempts/, order: 'delivery.retried' })
  await expect.poll(words).toMatch(/after 2 attempts/)
  await press(`${delivery}/skip`, { on: delivery, says: /Somebody skipped it/, order: 'delivery.skipped' })
  await expect.poll(words).toMatch(/given up/)
  await press(`${delivery}/replay`, { on: delivery, says: /queued|retrying/, order: 'delivery.replayed' })
  await press(`${delivery}/skip`, { on: delivery, says: /Somebody skipped it/, order: 'delivery.skipped' })
  await expect.poll(words).toMatch(/given up/)
  const count = { of: id, state: 'dead', since: '', to: id, do: 'count' }
  const counted = await press('/deliveries/replay', { on: '/deliveries/replay', fields: count, says: /1 delivery of 1 parcel/ })
  await press('/deliveries/replay', { on: counted, says: /1 delivery is queued again/, order: 'deliveries.replayed' })

  // Failures at five parcels make the webhook failing.
  for (let nth = 1; nth <= 6; nth++) await push(publicUrl, pushBody({ trackingIds: [`${name}${nth}`] }))
  await expect.poll(async () => (await visitor.get(on)).text).toContain(`action="${on}/retry"`)
  const before = shop.pushes.length
  await press(`${on}/retry`, { on, says: /events wait/, order: 'endpoint.retried' })
  await expect.poll(() => shop.pushes.length).toBeGreaterThan(before)
  return async () => {
    await press(`${on}/remove`, { on, fields: { confirm: name }, says: /Webhooks/, order: 'endpoint.removed' })
    expect((await visitor.get(on)).status).toBe(404)
  }
}

async function useParcels({ press }: Person, nth: number) {
  const [watched, asked] = [`CD20000${nth}`, `EF30000${nth}`]
  const on = `/parcels/${watched}`
  await press('/parcels', {
    on: '/parcels',
    fields: { identifiers: watched },
    says: /1 parcel is watched, 1 new/,
    order: 'parcels.watched',
  })
  await press(`${on}/unwatch`, { on, says: /Next check ended/, order: 'parcel.unwatched' })
  await press(`${on}/watch`, { on, says: /Watched by admin/, order: 'parcel.watched' })
  const fields = { reference: `ORDER-${nth}` }
  await press(`${on}/order`, { on, fields, says: /all its parcels/, order: 'parcel.order_changed' })
  const rules = { rules: '- { name: slow, when: { status: [Ingested] } }', since: '30d' }
  await press('/watchdogs/try', { on: '/watchdogs', fields: rules, says: /No parcel would have been found stalled/ })
  await press(`${on}/refresh`, { on, says: /Last check (?:just now|\d+ s ago)/, order: 'parcel.refreshed' })
  await press(`/parcels/${asked}/ask`, { on: `/parcels?query=${asked}`, says: /Watched by admin/, order: 'parcel.refreshed' })
  await press(`${on}/erase`, { on, fields: { confirm: watched }, says: /The parcel is erased/, order: 'parcels.erased' })
}

async function useInbox({ visitor, press }: Person, nth: number, publicUrl: string) {
  for (const text of ['first', 'second', 'third']) await push(publicUrl, `{"format":"${text} ${nth}"}`)
  const listed = (await visitor.get('/inbox')).text
  const on = /\/inbox\/\d+/.exec(listed)?.[0] ?? ''
  const reason = / name="reason" value="(\w+)"/.exec(listed)?.[1] ?? ''
  await press(`${on}/reprocess`, { on, says: /in quarantine/, order: 'push.reprocessed' })
  await press(`${on}/dismiss`, { on, says: /somebody decided that nobody needs it/, order: 'push.dismissed' })
  await press('/inbox', { on: '/inbox', fields: { reason }, says: /2 pushes are still not understood/, order: 'inbox.reprocessed' })
  const counted = await press('/inbox', { on: '/inbox', fields: { reason, do: 'count' }, says: /Dismiss 2 pushes/ })
  await press('/inbox', {
    on: counted,
    fields: { reason, do: 'dismiss', counted: '2' },
    says: /2 pushes are dismissed/,
    order: 'inbox.dismissed',
  })
}

async function useJobs({ visitor, press, used }: Person) {
  // So many parcels keep the next jobs waiting.
  const many = Array.from({ length: 3000 }, (_, nth) => `GH4${String(nth).padStart(5, '0')}`).join('\n')
  expect(wordsOf((await visitor.post('/parcels', { identifiers: many })).text)).toMatch(/3,000 parcels are watched/)
  const order = async (which: string) =>
    await press('/jobs/rebuild', { on: '/jobs', fields: { do: which }, says: /all histories/, order: 'store.rebuild_started' })
  for (const which of ['compare', 'rebuild']) await order(which)
  const listed = await order('compare')
  const [job = 0] = [...listed.matchAll(/\/jobs\/(\d+)\/cancel/g)].map(([, id]) => Number(id)).toSorted((a, b) => b - a)
  await press(`/jobs/${job}/cancel`, { on: listed, says: new RegExp(`${job} Compare all histories.* stopped`), order: 'job.cancelled' })
  await press('/retention', { on: '/retention', says: /Retention pass/, order: 'retention.ordered' })
  // The server of the database makes the backups, so the page has no form.
  expect((await visitor.get('/backups')).text).not.toContain('action="/backups"')
  const refused = await visitor.post('/backups', { name: 'now' })
  expect([refused.status, wordsOf(refused.text)]).toEqual([409, expect.stringContaining('PostgreSQL')])
  used.add('/backups')
}

async function useSettings({ visitor, press, used }: Person, operator: Receiver) {
  const on = '/settings'
  await press('/settings/reseal', { on, says: /all with the first at-rest key/, order: 'secrets.resealed' })
  await press('/settings/rotate-tokens', { on, says: /The key of tokens is replaced/, order: 'secrets.token_key_replaced' })
  await press('/check', { on: '/check', says: /Check again/ })
  // A test disables no address, so the event of the reload must still find this answer.
  operator.answer(() => 410)
  await press('/reload', { on: '/reload', says: /Reload it again/, order: 'config.reloaded' })
  await press('/events/test', { on: '/events', says: /The test was refused: 410/, order: 'operator.tested' })
  await expect.poll(async () => (await visitor.get('/')).text).toContain('action="/events/enable"')
  operator.answer(() => 200)
  await press('/events/enable', { on: '/', says: /Overview/, order: 'operator.enabled' })
  expect((await visitor.get('/')).text).not.toContain('action="/events/enable"')
  expect((await visitor.post('/logout')).headers.get('location')).toBe('/login')
  expect((await visitor.get('/')).status).toBe(401)
  expect((await visitor.post('/login', { ...ADMIN })).status).toBe(303)
  expect((await visitor.get('/')).status).toBe(200)
  for (const path of ['/login', '/logout']) used.add(path)
}

test('each form of the portal has its effect at each replica, and the page says what happened', async () => {
  const { replicas, shop, operator } = await start()
  expect(FORMS.length).toBeGreaterThan(30)
  for (const at of [1, 0] as const) {
    const { internalUrl, publicUrl } = replicas[at]
    const someone = await person(internalUrl, replicas[at === 1 ? 0 : 1].internalUrl)
    const remove = await useWebhooks(someone, `AB10000${at}`, shop, publicUrl)
    await useParcels(someone, at)
    await useInbox(someone, at, publicUrl)
    await useJobs(someone)
    await useSettings(someone, operator)
    await remove()
    expect(someone.faults).toEqual([])
    expect([...someone.used].toSorted()).toEqual([...new Set(FORMS)].toSorted())
  }
})
