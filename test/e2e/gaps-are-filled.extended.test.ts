import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { SandboxParcel } from '../../src/trial/sandbox/control-api.ts'
import type { PushRecord } from '../../src/trial/sandbox/pusher.ts'
import { type Asker, knownByPush, textOf, untilCaughtUp } from '../support/relay/caught-up.ts'
import { ADMIN, logIn, startTestRelay } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { inSeconds, metricOf } from '../support/relay/relay-process.ts'
import { type SandboxProcess, spawnSandbox, type World } from '../support/relay/sandbox-process.ts'
import { byForm, onlyLong } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { copyStore, storedBodies, storedRows } from '../support/store/stored-rows.ts'

/**
 * The tests share one relay, and one carrier that runs in a process of its own. The carrier loses a fifth of the pushes, sends a tenth twice,
 * and shuffles them. Its clock advances in leaps, and the relay polls after each leap.
 */
const PARCELS = byForm(34, 200)
/** With these settings, each hard case occurs at least twenty times. */
const HARD = byForm('0.6', '0.2')
const FLAGS = ['--parcels', String(PARCELS), '--seed', '7', '--hard', HARD, '--loss', '0.2', '--duplicates', '0.1', '--reorder', '100']
const LEAPS_HOURS = [12, 10, 8]
const LANGUAGES = ['en', 'sv'] as const
const SILENT = 5

const things = new AsyncDisposableStack()
const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
things.defer(() => rmSync(folder, { recursive: true, force: true }))

let sandbox: SandboxProcess
let relay: Awaited<ReturnType<typeof startTestRelay>>
let asker: Asker
let world: World

beforeAll(async () => {
  sandbox = things.use(await spawnSandbox(FLAGS))
  relay = await startTestRelay(folder, sandbox.url, inSeconds)
  things.defer(() => relay.stop())
  asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  await sandbox.order('webhooks', { urls: [`${relay.publicUrl}/webhooks/status`] })
  await addSilentParcels()
  for (const hours of LEAPS_HOURS) {
    await sandbox.order('advance', { seconds: hours * 3600 })
    await untilPolledAnew()
  }
  await askInVain((await sandbox.world()).parcels.filter((_, nth) => nth % 2 === 0))
  await sandbox.order('finish')
  world = await sandbox.world()
  await askInVain(world.parcels)
})

afterAll(() => things.disposeAsync())

async function addSilentParcels(): Promise<void> {
  await sandbox.order('faults', { loss: 1 })
  for (let nth = 0; nth < SILENT; nth++) {
    const trackingNumber = `QQ10000000${nth}SE`
    await sandbox.order('parcels', { trackingNumber, trackingIds: [`99000000000000000${nth}`] })
    for (const status of ['Created', 'Ingested']) await sandbox.order('scan', { trackingNumber, status, location: 'Åre' })
  }
  await sandbox.order('faults', { loss: 0.2 })
}

/** Waits for at least as many new polls as there are parcels that the relay should poll. */
async function untilPolledAnew(): Promise<void> {
  const { parcels } = await sandbox.world()
  const alive = parcels.filter((parcel) => knownByPush(parcel) !== null && parcel.entries < parcel.entriesPlanned).length
  const polls = async () => (await sandbox.stats()).calls['/v1/status/{number}/all']?.['200'] ?? 0
  const before = await polls()
  await vi.waitFor(async () => expect(await polls()).toBeGreaterThanOrEqual(before + alive))
}

/** Asks for the parcels that no push has reported, so that the relay learns their tracking numbers. */
async function askInVain(parcels: readonly SandboxParcel[]): Promise<void> {
  const hidden = parcels.filter((parcel) => knownByPush(parcel) === null)
  await Promise.all(hidden.map(({ trackingNumber }) => textOf(asker, trackingNumber, 'all', 'en')))
}

const nameOf = (parcel: SandboxParcel): string => knownByPush(parcel) ?? parcel.trackingNumber
const isAccepted = ({ attempts }: PushRecord): boolean => attempts.some(({ status }) => status === 200)

const isLost = ({ fate }: PushRecord): boolean => fate === 'lost'

/** Returns the fields that identify an entry, both in pushes and in the store. */
function groupOf(body: string): string {
  const { status, detailedStatus, eventTime } = objectOf(JSON.parse(body))
  return JSON.stringify([status, detailedStatus, Math.floor(Date.parse(String(eventTime)) / 1000)])
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

const instantOf = ({ body }: PushRecord): number => Date.parse(String(objectOf(JSON.parse(body)).eventTime))

/** Returns the lost events of a parcel that no other push reported, so that only a poll can find them. */
function onlyPolled({ pushes }: SandboxParcel): readonly PushRecord[] {
  const brought = new Set(pushes.filter(isAccepted).map(({ body }) => groupOf(body)))
  return pushes.filter((push) => isLost(push) && !brought.has(groupOf(push.body)))
}

/** Counts the missed pushes. Leaves out events before the first push that arrived, because the relay did not know the parcel then. */
function missedPushes(parcels: readonly SandboxParcel[]): number {
  return parcels.reduce((sum, parcel) => {
    const sinceMs = Math.min(...parcel.pushes.filter(isAccepted).map(instantOf))
    return sum + onlyPolled(parcel).filter((push) => instantOf(push) >= sinceMs).length
  }, 0)
}

async function refresh(parcel: SandboxParcel, { internalUrl, token }: Asker): Promise<void> {
  const url = `${internalUrl}/relay/parcels/${nameOf(parcel)}/refresh`
  const answer = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"recorded"')])
}

async function staleAnswers(): Promise<readonly string[]> {
  const looks = world.parcels.flatMap((parcel) =>
    LANGUAGES.map(async (language) => {
      const served = await textOf(asker, nameOf(parcel), 'all', language)
      return served === parcel.answers[language] ? [] : [`${parcel.trackingNumber} ${language}`]
    }),
  )
  return (await Promise.all(looks)).flat()
}

async function everyAnswer(of: Asker): Promise<readonly string[]> {
  const kinds = ['all', 'latest'] as const
  return await Promise.all(
    world.parcels.flatMap((parcel) => LANGUAGES.flatMap((language) => kinds.map((kind) => textOf(of, nameOf(parcel), kind, language)))),
  )
}

test('the run meets each hard case at least twenty times, and parcels without any push', async () => {
  for (const [name, count] of Object.entries(world.tally)) expect(count, name).toBeGreaterThanOrEqual(20)
  const silent = world.parcels.filter(({ pushes }) => !pushes.some(isAccepted))
  expect(silent.length).toBeGreaterThanOrEqual(SILENT)
  expect(world.parcels.length).toBe(PARCELS + SILENT)
})

test('about a fifth of the pushes is lost, a tenth comes twice, and many come out of order', async () => {
  const { pushes } = await sandbox.stats()
  expect(pushes).toMatchObject({ waiting: 0, silenced: 0, failed: 0, answers: { 200: pushes.sent } })
  expect(pushes.events).toBeGreaterThan(6 * PARCELS)
  // Allow four standard deviations.
  expect(Math.abs(pushes.lost / pushes.events - 0.2)).toBeLessThan(4 * Math.sqrt((0.2 * 0.8) / pushes.events))
  expect(pushes.duplicated / pushes.events).toBeGreaterThan(0.06)
  expect(pushes.reordered).toBeGreaterThan(PARCELS / 2)
})

const untilPollsCaughtUp = () => untilCaughtUp(asker, world.parcels, 'en', nameOf)

test('after the polls, every history in the first language equals the carrier’s, byte for byte', async () => {
  await untilPollsCaughtUp()
})

test('entries of lost pushes are counted as missed after missedPushGrace', async () => {
  const owed = missedPushes(world.parcels)
  expect(owed).toBeGreaterThan(PARCELS)
  await expect.poll(() => metricOf(relay.internalUrl, 'relay_missed_pushes_total')).toBeGreaterThanOrEqual(owed)
  expect(await metricOf(relay.internalUrl, 'relay_parcels')).toBe(world.parcels.length)
})

test('the store shows that only polls brought the entries of lost pushes', async () => {
  await untilPollsCaughtUp()
  const bodies = await storedBodies(join(folder, 'relay.db'))
  const accepted = world.parcels.flatMap(({ pushes }) => pushes.filter(isAccepted))
  expect(bodies).toEqual(new Set(accepted.map(({ body }) => body)))
  let filled = 0
  for (const parcel of world.parcels) {
    const doors = await doorsOf(parcel.trackingIds[0] ?? '')
    for (const { body } of onlyPolled(parcel)) expect([body, doors.get(groupOf(body))]).toEqual([body, 'poll'])
    const used = new Set(doors.values())
    if (used.has('push,poll') && used.has('poll')) filled += 1
  }
  expect(filled).toBeGreaterThan(0.4 * PARCELS)
})

test('after a refresh, every history equals the carrier’s in both languages, byte for byte', async () => {
  await untilPollsCaughtUp()
  const before = await staleAnswers()
  await Promise.all(world.parcels.map((parcel) => refresh(parcel, asker)))
  expect(await staleAnswers()).toEqual([])
  // Scheduled polls ask in the first language. In the second, they fetch only texts that are missing, so a changed text may be outdated.
  expect(before.filter((answer) => !answer.endsWith(' sv'))).toEqual([])
})

onlyLong(test)('a restart on the same store changes no byte of any answer', async () => {
  // Other tests use the relay, so restart another one on a copy of the store. First refresh all parcels, so that nothing is left to learn.
  const copy = temporaryFolder()
  await copyStore(join(folder, 'relay.db'), join(copy, 'relay.db'))
  const start = () => relayOfTest(inSeconds, { folder: copy, carrierUrl: sandbox.url })
  const first = await start()
  const own = { ...asker, internalUrl: first.internalUrl }
  await Promise.all(world.parcels.map((parcel) => refresh(parcel, own)))
  const before = await everyAnswer(own)
  await first.stop()
  const second = await start()
  expect(await everyAnswer({ ...own, internalUrl: second.internalUrl })).toEqual(before)
  expect(before).toHaveLength(world.parcels.length * 4)
})

const SIGHTINGS = `
  select json_array(content.json ->> 'status', content.json ->> 'detailedStatus', sighting.at_ms / 1000) as entry,
    group_concat(distinct content.json ->> 'source' order by content.json ->> 'source' desc) as doors
  from sighting join content on content.id = sighting.content_id
  where parcel_id = (select parcel_id from identifier where value = ?) group by 1`

/** Returns for each stored entry whether pushes, polls or both brought it. */
async function doorsOf(identifier: string): Promise<ReadonlyMap<string, string>> {
  const rows = await storedRows<{ readonly entry: string; readonly doors: string }>(join(folder, 'relay.db'), SIGHTINGS, identifier)
  return new Map(rows.map(({ entry, doors }) => [entry, doors]))
}
