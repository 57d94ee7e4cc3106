import { DAY_MS } from '../../support/runner/constants.ts'
import type { Action } from './calendar.ts'
import { checkErased, checkErasedFiles, until } from './checks.ts'
import { looked } from './looked.ts'
import { isFinished, knownAs, type YearParcel } from './parcels.ts'
import type { Answered } from './relay.ts'
import type { World } from './world.ts'

const SHOP = 'shop'

/** Must be called once, after the first start of the relay. */
export async function addShop({ relay, subscriber }: World): Promise<void> {
  const { status, body, text } = await relay.call('POST', '/relay/endpoints', { name: SHOP, url: subscriber.url, backfill: true })
  if (status !== 201) throw new Error(`no endpoint: ${text}`)
  subscriber.key = String(body.sharedKey)
}

export async function carryOut(action: Action, world: World): Promise<void> {
  await ACTIONS[action](world)
}

const ACTIONS: Readonly<Record<Action, (world: World) => Promise<void>>> = {
  'replace the shared key': replaceSharedKey,
  'replace the key of the endpoint': replaceEndpointKey,
  'replace the at-rest key': replaceAtRestKey,
  'drop the old at-rest keys': dropOldAtRestKeys,
  'replace the key of tokens': replaceTokenKey,
  'keep a backup': ({ store, relay, gateway }) => whileDown({ relay, gateway }, () => store.keepForRestore(relay)),
  'erase after the backup': eraseAfterBackup,
  restore,
  async 'the carrier renames a member'({ gateway }) {
    gateway.isRenamed = true
  },
  'upgrade and reprocess': upgrade,
}

/** Refuses the carrier's pushes during the work. The work may restart the relay, which changes its address. */
async function whileDown({ relay, gateway }: Pick<World, 'relay' | 'gateway'>, work: () => Promise<void>): Promise<void> {
  gateway.relayUrl = null
  await work()
  gateway.relayUrl = relay.publicUrl()
}

export async function startRelay({ relay, gateway }: World): Promise<void> {
  await whileDown({ relay, gateway }, () => relay.start())
}

export async function restartRelay({ relay, gateway }: World, how: 'stop' | 'kill'): Promise<void> {
  await whileDown({ relay, gateway }, async () => {
    await relay[how]()
    await relay.start()
  })
}

async function replaceSharedKey({ day, settings, gateway, relay }: World): Promise<void> {
  const next = `the-shared-key-of-day-${day}`
  settings.sharedKeys = [next, ...settings.sharedKeys]
  await relay.reload()
  gateway.key = next
  settings.sharedKeys = [next]
  await relay.reload()
}

async function shopId({ relay }: World): Promise<string> {
  const { body } = await relay.call('GET', '/relay/endpoints')
  const [found] = Array.isArray(body.endpoints) ? body.endpoints.filter(({ name }) => name === SHOP) : []
  if (found === undefined) throw new Error('the endpoint is gone')
  return String(found.id)
}

/** The shop uses the new key at once. Without `order`, the relay signs with both keys for a day. */
async function replaceEndpointKey(world: World, order?: { readonly sharedKey: null; readonly at: 'now' }): Promise<void> {
  const { status, body, text } = await world.relay.call('POST', `/relay/endpoints/${await shopId(world)}/rotate`, order)
  if (status !== 200) throw new Error(`no new key of the endpoint: ${text}`)
  world.subscriber.key = String(body.sharedKey)
}

/** Adds a new at-rest key. The old keys stay in the config as long as a backup needs them. */
async function replaceAtRestKey({ day, settings, relay, violations }: World): Promise<void> {
  const next = Buffer.alloc(32, `at rest ${day}`).toString('base64')
  const before = settings.atRestKeys
  for (const keys of [
    [...before, next],
    [next, ...before],
  ]) {
    settings.atRestKeys = keys
    await relay.reload()
  }
  await reseal({ relay, violations })
}

async function reseal({ relay, violations }: Pick<World, 'relay' | 'violations'>): Promise<void> {
  const { status, text, body } = await relay.call('POST', '/relay/secrets/reseal')
  const isDone = status === 200 && Array.isArray(body.unreadable) && body.unreadable.length === 0
  if (!isDone) violations.add(`secrets were not sealed again: ${status} ${text}`)
}

/** Seals all secrets with the newest key, because a restore may have brought back some with an old key. Then drops the old keys. */
async function dropOldAtRestKeys({ settings, relay, violations }: World): Promise<void> {
  await reseal({ relay, violations })
  settings.atRestKeys = settings.atRestKeys.slice(0, 1)
  await relay.reload()
}

async function replaceTokenKey({ relay, violations }: World): Promise<void> {
  const { status, text } = await relay.call('POST', '/relay/secrets/rotate-tokens')
  if (status !== 200) violations.add(`the key of tokens was not replaced: ${status} ${text}`)
}

/**
 * Erases a parcel, and does what the answer tells the operator to do. Skips a parcel if the relay has not learnt all its tracking ids: a later
 * push that names only the unknown ids would make a new parcel.
 */
export async function erase(parcel: YearParcel, world: World): Promise<void> {
  const { relay, store, subscriber, time, violations } = world
  const known = await relay.call('GET', `/relay/parcels/${knownAs(parcel)}`)
  if (!parcel.trackingIds.every((id) => known.text.includes(`"${id}"`))) return
  const answer = await relay.call('DELETE', `/relay/parcels/${knownAs(parcel)}`)
  const { status, body, text } = answer
  if (status !== 200) {
    violations.add(`parcel ${parcel.number} (${knownAs(parcel)}) was not erased: ${status} ${text}`)
    return
  }
  parcel.erasedAtMs = time.now()
  subscriber.forget(parcel)
  await cleanFiles(parcel, answer, world)
  store.removeReplaced(Array.isArray(body.stores) ? body.stores.map(String) : [])
  checkErasedFiles({ store, violations }, parcel)
  const asked = await relay.call('GET', `/v1/status/${knownAs(parcel)}/all`)
  if (asked.status !== 404) violations.add(`the erased parcel ${parcel.number} is served: ${asked.status} ${asked.text}`)
}

/** Does what the answer to an erasure says about the files, until an answer says that they are clean. Does nothing on PostgreSQL. */
async function cleanFiles(parcel: YearParcel, first: Answered, world: World): Promise<void> {
  const { relay, store, violations, day } = world
  if (!store.isCleanAtOnce) return
  const because = ({ body }: Answered) => String(body.storageBecause)
  let answer = first
  const ask = async () => {
    answer = await relay.call('DELETE', `/relay/parcels/${knownAs(parcel)}`)
    return !because(answer).includes('still being searched')
  }
  if (because(answer).includes('still being searched')) await until('the file is searched', ask)
  if (because(answer).includes('prune --compact')) {
    console.log(`day ${day}: ${because(answer)}`)
    await whileDown(world, async () => {
      await relay.stop()
      await relay.command('prune', '--compact')
      await relay.start()
    })
    await ask()
  }
  if (answer.body.storage !== 'clean') violations.add(`the erasure of parcel ${parcel.number} left the files unclean: ${answer.text}`)
}

/** Erases a parcel that the backup contains, so that only its tombstone keeps it from coming back. */
async function eraseAfterBackup(world: World): Promise<void> {
  const { parcels, draw, time } = world
  const known = parcels.filter(({ scans, erasedAtMs, isOrdered, made }) => {
    const bornMs = scans[0]?.atMs ?? 0
    return isOrdered && made > 0 && erasedAtMs === null && bornMs > time.now() - 6 * DAY_MS && bornMs < time.now() - 3 * DAY_MS
  })
  await erase(draw.pick(known), world)
}

/** Restores the backup, and repeats the shop's orders since the backup. The relay itself repeats the erasures. */
async function restore(world: World): Promise<void> {
  const { relay, gateway, store, subscriber, parcels, time } = world
  gateway.relayUrl = null
  await relay.stop()
  const restoredMs = await store.restore(relay, subscriber.lastSequence())
  await startRelay(world)
  subscriber.relayRestored()
  await replaceEndpointKey(world, { sharedKey: null, at: 'now' })
  await until('what was erased is erased again', async () => (await relay.call('GET', '/readyz')).status === 200)
  const before = parcels.find(({ erasedAtMs }) => erasedAtMs !== null && erasedAtMs < restoredMs)
  if (before !== undefined) await cleanFiles(before, await relay.call('DELETE', `/relay/parcels/${knownAs(before)}`), world)
  await checkErased(looked(world))
  const since = parcels.filter(({ scans, made, erasedAtMs }) => {
    const lastMs = scans[made - 1]?.atMs ?? time.now()
    return erasedAtMs === null && lastMs > restoredMs - DAY_MS
  })
  for (const parcel of since) await order(parcel, world)
  await until('operators are told of the restore', async () => {
    const { body } = await relay.call('GET', '/relay/operator-events?event=store_restored')
    return Array.isArray(body.events) && body.events.length > 0
  })
}

export async function order(parcel: YearParcel, { relay, time, violations }: World): Promise<void> {
  const { status, text } = await relay.call('PUT', `/relay/parcels/${parcel.trackingNumber}/watch`)
  if (status >= 300) violations.add(`parcel ${parcel.number} was not watched: ${status} ${text}`)
  else parcel.askedAtMs = time.now()
}

/** Asks as an app for a parcel that the shop did not order. On a day with faults the carrier may not answer, so the app tries again later. */
export async function ask(parcel: YearParcel, { relay, time, violations }: World): Promise<void> {
  const { status, text } = await relay.call('GET', `/v1/status/${parcel.trackingNumber}/all`)
  if (status === 200) parcel.askedAtMs = time.now()
  else if (status !== 503) violations.add(`an app that asked for parcel ${parcel.number} got ${status} ${text}`)
}

/** Starts a version of the relay that has one more migration and understands the carrier's new format. Then reprocesses quarantined pushes. */
async function upgrade(world: World): Promise<void> {
  const { relay, gateway, settings, violations } = world
  const before = await relay.call('POST', '/relay/inbox/reprocess?reason=event_time&dryRun=true')
  if (Number(before.body.count) === 0) violations.add('no push in the changed format was quarantined')
  await whileDown({ relay, gateway }, async () => {
    await relay.stop()
    settings.isNextVersion = true
    await relay.start()
  })
  const { status, text, body } = await relay.call('POST', '/relay/inbox/reprocess?reason=event_time')
  if (status >= 300) violations.add(`the quarantined pushes were not reprocessed: ${status} ${text}`)
  if (status === 202)
    await until('the reprocessing ends', async () => isEnded((await relay.call('GET', `/relay/jobs/${String(body.id)}`)).body.state))
  const { body: left } = await relay.call('GET', '/relay/inbox?state=quarantined')
  if (!Array.isArray(left.pushes) || left.pushes.length > 0)
    violations.add(`pushes are still in quarantine: ${JSON.stringify(left).slice(0, 400)}`)
}

const isEnded = (state: unknown): boolean => ['done', 'failed', 'cancelled'].includes(String(state))

/** Picks a parcel, in transit or delivered, whose recipient asks for erasure. Null: there is no such parcel. */
export function chosenForErasure({ parcels, draw, time, lengths }: World): YearParcel | null {
  const oldestMs = time.now() - (lengths.historyDays - 2) * DAY_MS
  const known = parcels.filter(
    ({ isOrdered, askedAtMs, made, erasedAtMs, scans }) =>
      (isOrdered || askedAtMs > 0) && made > 0 && erasedAtMs === null && (scans[0]?.atMs ?? 0) > oldestMs,
  )
  if (known.length === 0) return null
  const onTheWay = known.filter((parcel) => !isFinished(parcel))
  return draw.pick(onTheWay.length > 0 && draw.below(2) === 0 ? onTheWay : known)
}
