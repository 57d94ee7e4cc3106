import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sandbox, SandboxParcel } from '../../../src/trial/sandbox/control-api.ts'
import { hardCases } from '../../../src/trial/sandbox/parcel-plan.ts'
import { startWebhookReceiver } from '../../support/network/webhook-receiver.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { anchorMs, entriesOf, parsed, stillSandbox } from './sandbox-fixture.ts'

type Item = Readonly<Record<string, unknown>>

/** Opens a sandbox and pushes all its events to a receiver, so that its statistics count what was sent over the network. */
async function finishedWorld(parcels: number): Promise<Sandbox & AsyncDisposable> {
  const receiver = await startWebhookReceiver()
  const sandbox = await stillSandbox({ parcels, webhookUrls: [receiver.url] })
  await sandbox.finish()
  expect(receiver.pushes).toHaveLength(sandbox.stats().pushes.events)
  await receiver[Symbol.asyncDispose]()
  return sandbox
}

const pushesOf = (parcel: SandboxParcel): readonly Item[] => parcel.pushes.map(({ body }) => parsed(body))
const secondOf = (time: unknown): string => String(time).slice(0, 19)
const groupOf = (item: Item): string => JSON.stringify([item.status, item.detailedStatus, secondOf(item.eventTime ?? item.eventTimestamp)])
const isWhole = (time: unknown): boolean => Date.parse(String(time)) % 1000 === 0
const placeOf = (item: Item): string => (typeof item.location === 'string' ? item.location : '')
const instantOf = (item: Item): number => Date.parse(String(item.eventTime ?? item.eventTimestamp))

function fits(pulled: Item, pushed: Item): boolean {
  if (groupOf(pulled) !== groupOf(pushed)) return false
  const places = placeOf(pulled) === '' || placeOf(pushed) === '' || placeOf(pulled) === placeOf(pushed)
  return places && (isWhole(pulled.eventTimestamp) || instantOf(pulled) === instantOf(pushed))
}

function sizes(items: readonly Item[], keyOf: (item: Item) => string): readonly number[] {
  return [...Map.groupBy(items, keyOf).values()].map((group) => group.length)
}

function counted(sandbox: Sandbox, count: (pulled: readonly Item[], pushed: readonly Item[], parcel: SandboxParcel) => number): number {
  return sandbox.world.parcels().reduce((sum, parcel) => sum + count(entriesOf(parcel.answers.en), pushesOf(parcel), parcel), 0)
}

/** A finished world, shared by the tests that only read it. */
let whole: Awaited<ReturnType<typeof finishedWorld>>
beforeAll(async () => {
  whole = await finishedWorld(byForm(60, 200))
})
afterAll(() => whole[Symbol.asyncDispose]())

test('a world of 200 parcels holds at least twenty of every hard case', async () => {
  await using sandbox = await stillSandbox({ parcels: 200 })
  for (const name of hardCases) expect(sandbox.world.tally[name], name).toBeGreaterThanOrEqual(20)
})

test('a tidy world has no hard cases, and a mix sets the exact number of each case', async () => {
  await using tidy = await stillSandbox({ parcels: 50, hard: 0 })
  for (const name of hardCases) expect(tidy.world.tally[name], name).toBe(0)
  await using mixed = await stillSandbox({ parcels: 50, hard: 0, mix: { numberOnly: 0.1, backDated: 0.2 } })
  expect(mixed.world.tally).toEqual({ ...tidy.world.tally, numberOnly: 5, backDated: 10 })
})

test('the tally of hard cases matches the pushes and answers of the finished world', async () => {
  const shownStatuses = /^(DeliverySucceeded|TerminalArrived|DeliveryStarted|TerminalUpdated|Ingested|Created)$/
  const shownDetails = /^(DeliverySucceededMailbox|ArrivedT[12]|ArrivedT3NoAlias|DeliveryStarted|ParcelUpdated|Ingested|Created)$/
  const { tally } = whole.world
  const pairs = (pulled: readonly Item[], pushed: readonly Item[]) =>
    pulled.map((item) => [item, pushed.find((push) => fits(item, push))] as const)
  expect({
    wholeSecondPulls: counted(
      whole,
      (pulled, pushed) => pairs(pulled, pushed).filter(([pull, push]) => isWhole(pull.eventTimestamp) && !isWhole(push?.eventTime)).length,
    ),
    emptyPullLocation: counted(
      whole,
      (pulled, pushed) => pairs(pulled, pushed).filter(([pull, push]) => pull.location === '' && placeOf(push ?? {}) !== '').length,
    ),
    emptyPushLocation: counted(
      whole,
      (pulled, pushed) => pairs(pulled, pushed).filter(([pull, push]) => pull.location !== '' && placeOf(push ?? {}) === '').length,
    ),
    equalInstants: counted(
      whole,
      (_, pushed) =>
        [...Map.groupBy(pushed, (push) => String(push.eventTime)).values()].filter((same) => sizes(same, groupOf).length > 1).length,
    ),
    twoPlaces: counted(
      whole,
      (pulled) => [...Map.groupBy(pulled, groupOf).values()].filter((same) => sizes(same, placeOf).length > 1).length,
    ),
    equalEntries: counted(whole, (pulled) => sizes(pulled, (item) => JSON.stringify(item)).filter((size) => size > 1).length),
    unknownWords: counted(
      whole,
      (pulled) =>
        pulled.filter((item) => !shownStatuses.test(String(item.status)) || !shownDetails.test(String(item.detailedStatus))).length,
    ),
    unknownFields: counted(whole, (_, __, { answers, pushes }) =>
      Number(
        [answers.en, ...pushes.map(({ body }) => body)].every(
          (text) => /12345678901234567890\b/.test(text) && /98765432109876543210\b/.test(text),
        ),
      ),
    ),
    backDated: counted(
      whole,
      (_, pushed) => pushed.filter((push, nth) => pushed.slice(0, nth).some((before) => instantOf(before) > instantOf(push))).length,
    ),
    trackingIdsAdded: counted(whole, (_, pushed) =>
      Number(JSON.stringify(pushed[0]?.trackingIds) !== JSON.stringify(pushed.at(-1)?.trackingIds)),
    ),
    spacedBodies: counted(whole, (_, __, { pushes }) => Number(pushes.every(({ body }) => body.includes('\r\n')))),
    numberOnly: counted(whole, (_, __, { numberOnly }) => Number(numberOnly)),
    textsChanged: counted(
      whole,
      (pulled, pushed) =>
        pairs(pulled, pushed).filter(
          ([pull, push]) => pull.detailedStatusDescription !== '' && pull.detailedStatusDescription !== englishOf(push),
        ).length,
    ),
    textsWithdrawn: counted(
      whole,
      (pulled, pushed) =>
        pairs(pulled, pushed).filter(([pull, push]) => pull.detailedStatusDescription === '' && englishOf(push) !== '').length,
    ),
  }).toEqual(tally)
})

function englishOf(push: Item | undefined): string {
  const texts: unknown = push?.detailedStatusDescription
  if (!Array.isArray(texts)) throw new Error('a push without texts')
  return String(texts.map((text) => parsed(JSON.stringify(text))).find(({ languageCode }) => languageCode === 'en')?.value)
}

test('equal entries come two or three at a time, and their pushes are equal to the letter', async () => {
  const found = new Set<number>()
  for (const parcel of whole.world.parcels()) {
    const pushSizes = [...Map.groupBy(parcel.pushes, ({ body }) => body).values()].map((same) => same.length).filter((size) => size > 1)
    const pullSizes = sizes(entriesOf(parcel.answers.sv), (item) => JSON.stringify(item)).filter((size) => size > 1)
    expect(pushSizes).toEqual(pullSizes)
    for (const size of pullSizes) found.add(size)
  }
  expect([...found].toSorted((a, b) => a - b)).toEqual([2, 3])
})

test('every entry of a pull matches exactly one push', async () => {
  for (const parcel of whole.world.parcels()) {
    const pulled = entriesOf(parcel.answers.en)
    const distinctPushes = [...new Map(parcel.pushes.map(({ body }) => [body, parsed(body)])).values()]
    expect(pulled).toHaveLength(parcel.pushes.length)
    for (const item of pulled)
      expect(
        distinctPushes.filter((push) => fits(item, push)),
        JSON.stringify(item),
      ).toHaveLength(1)
  }
})

test('a parcel keeps its first tracking id in every push and answer', async () => {
  let grown = 0
  for (const parcel of whole.world.parcels()) {
    const named = [...pushesOf(parcel), parsed(parcel.answers.en)].map(
      ({ trackingIds }) => new Set(Array.isArray(trackingIds) ? trackingIds.map(String) : []),
    )
    for (const [nth, ids] of named.entries()) expect([...ids]).toEqual(expect.arrayContaining([...(named[nth - 1] ?? [])]))
    if ((named.at(-1)?.size ?? 0) > (named[0]?.size ?? 0)) grown += 1
    expect(parcel.trackingNumber).toMatch(/^[A-Z]{2}\d{9}SE$/)
    for (const id of parcel.trackingIds) expect(id).toMatch(/^\d+$/)
  }
  expect(grown).toBe(whole.world.tally.trackingIdsAdded)
})

test('pushes have exactly the specification’s fields, and texts only for consumers', async () => {
  await using sandbox = await finishedWorld(30)
  const fields =
    'status detailedStatus eventTime location trackingIds distributionType displayToConsumer consumerDescription detailedStatusDescription'
  const pushes = sandbox.world.parcels().flatMap(pushesOf)
  expect(new Set(pushes.map(({ displayToConsumer }) => displayToConsumer))).toEqual(new Set([true, false]))
  for (const push of pushes) {
    const known = Object.keys(push).filter((name) => !['scanNumber', 'handling', 'consignment', 'links'].includes(name))
    expect(known).toEqual(fields.split(' '))
    expect(push.eventTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    if (push.displayToConsumer === false) expect(push.consumerDescription).toEqual([])
    else expect(push.consumerDescription).toHaveLength(2)
  }
})

test('the same seed gives the same world, and another seed gives another world', async () => {
  await using one = await finishedWorld(20)
  await using same = await finishedWorld(20)
  await using other = await stillSandbox({ parcels: 20, seed: 2 })
  const bodies = ({ world }: Sandbox) => world.parcels().map(({ answers, pushes }) => [answers, pushes.map(({ body }) => body)])
  expect(bodies(same)).toEqual(bodies(one))
  expect(other.world.parcels()[0]?.trackingNumber).not.toBe(one.world.parcels()[0]?.trackingNumber)
})

test('no scan is in the future, and a world grows step by step', async () => {
  await using sandbox = await stillSandbox({ parcels: 20 })
  let entries = 0
  while (!sandbox.finished()) {
    await sandbox.advance(2 * 3_600_000)
    const now = sandbox.world.parcels().reduce((sum, parcel) => sum + parcel.entries, 0)
    expect(now).toBeGreaterThanOrEqual(entries)
    entries = now
    for (const { answers } of sandbox.world.parcels())
      for (const item of entriesOf(answers.en)) expect(instantOf(item)).toBeLessThanOrEqual(sandbox.now())
  }
  expect(sandbox.now()).toBeLessThanOrEqual(anchorMs)
  for (const parcel of sandbox.world.parcels()) expect(parcel.entries).toBe(parcel.entriesPlanned)
})

test('an answer first has the texts of the push, and changed texts only later', async () => {
  await using sandbox = await stillSandbox({ parcels: 1, hard: 0, mix: { textsChanged: 1, textsWithdrawn: 1 } })
  const seen = new Map<string, Set<unknown>>()
  while (!sandbox.finished()) {
    await sandbox.advance(1_800_000)
    for (const item of entriesOf(sandbox.world.parcels()[0]?.answers.en ?? ''))
      seen.set(String(item.detailedStatus), (seen.get(String(item.detailedStatus)) ?? new Set()).add(item.consumerDescription))
  }
  expect([...(seen.get('Created') ?? [])]).toEqual(['We know of your parcel', null])
  expect([...(seen.get('ArrivedT2') ?? [])]).toEqual(['Your parcel is near', 'Your parcel is near, but later than planned'])
  expect([...(seen.get('Ingested') ?? [])]).toHaveLength(1)
})
