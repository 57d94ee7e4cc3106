import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createLiveView, layOut } from '../../../src/trial/demo/live-view.ts'
import { happeningsBetween, type Picture, pictureOf, totalsOf } from '../../../src/trial/demo/picture.ts'
import type { Stage } from '../../../src/trial/demo/stage.ts'
import { pinsOfGuide, pinsOfMore, presentGuide } from '../../../src/trial/demo.command.ts'
import { startSandbox } from '../../../src/trial/sandbox/sandbox.ts'
import { startWebhookReceiver } from '../../support/network/webhook-receiver.ts'

/** Simulates 12 parcels to their end, and returns their picture. `historyOf` makes the relay's answer from the carrier's. */
async function finishedPicture(loss: number, historyOf: (answer: string) => string | null): Promise<Picture> {
  await using receiver = await startWebhookReceiver()
  const sandbox = await startSandbox({ speed: 0, parcels: 12, hard: 0.3, webhookUrls: [receiver.url], faults: { loss } })
  await sandbox.finish()
  const parcels = sandbox.world.parcels().map((parcel) => pictureOf(parcel, historyOf(parcel.answers.en)))
  await sandbox.stop()
  return {
    parcels,
    replicas: [{ name: 'relay', isRunning: true, roles: [], pushes: { received: receiver.pushes.length, duplicates: 0 } }],
    subscriber: { events: 0, wrong: 0, stalled: 0, recovered: 0 },
  }
}

const marksOfLost = ({ parcels }: Picture) => parcels.flatMap(({ events }) => events.filter(({ lost }) => lost).map(({ mark }) => mark))

/** A demo whose addresses have the greatest possible length. */
const STAGE = {
  replicas: [{ internalUrl: 'http://127.0.0.1:65534' }, { internalUrl: 'http://127.0.0.1:65535' }],
  carrier: { url: 'http://127.0.0.1:65533' },
} as unknown as Stage
const PINNED = pinsOfGuide(STAGE)

test('a history equal to the carrier’s is complete, and its lost entries count as polled', async () => {
  const picture = await finishedPicture(0.3, (answer) => answer)
  const totals = totalsOf(picture)
  expect(totals).toMatchObject({ complete: 12, parcels: 12, filled: totals.lost })
  expect(marksOfLost(picture)).toEqual(Array.from({ length: totals.lost }, () => 'polled'))
  expect(totals.lost).toBe(totals.events - totals.pushes.received)
  expect(totals.lost).toBeGreaterThan(10)
})

test('a history that differs from the carrier’s by one byte is not complete', async () => {
  expect(totalsOf(await finishedPicture(0, (answer) => `${answer} `)).complete).toBe(0)
})

test('if the relay has no entries, an entry counts as missing only if its push was lost', async () => {
  const picture = await finishedPicture(0.3, () => null)
  expect(totalsOf(picture)).toMatchObject({ complete: 0, filled: 0 })
  for (const { lost, mark } of picture.parcels.flatMap(({ events }) => events)) expect(mark).toBe(lost ? 'missing' : 'pushed')
})

test('a change between two pictures is reported once', async () => {
  const missing = await finishedPicture(0.3, () => null)
  const filled = await finishedPicture(0.3, (answer) => answer)
  const kinds = (before: Picture | null, now: Picture) => new Set(happeningsBetween(before, now).map(({ kind }) => kind))
  expect(kinds(null, missing)).toEqual(new Set(['pushed', 'lost']))
  expect(kinds(missing, filled)).toEqual(new Set(['filled', 'complete']))
  expect(happeningsBetween(filled, filled)).toEqual([])
})

test.each([
  { columns: 120, rows: 50 },
  { columns: 80, rows: 24 },
  { columns: 40, rows: 12 },
  { columns: 10, rows: 4 },
])('the live picture fits a terminal of $columns columns and $rows rows', async (size) => {
  const below = { news: ['push received     AB123456789SE  Created'], pinned: PINNED }
  const lines = layOut(await finishedPicture(0.3, () => null), below, size)
  expect(lines.length).toBeLessThan(size.rows)
  for (const line of lines) expect(line.length).toBeLessThan(size.columns)
})

test('the live picture counts the parcels that do not fit', async () => {
  const picture = await finishedPicture(0.3, () => null)
  const [parcel] = picture.parcels
  if (parcel === undefined) throw new Error('a picture without parcels')
  const many = { ...picture, parcels: Array.from({ length: 30 }, (_, at) => ({ ...parcel, trackingNumber: `AB${100_000_000 + at}SE` })) }
  const lines = layOut(many, { news: [], pinned: PINNED }, { columns: 80, rows: 24 })
  const shown = lines.join('\n').match(/AB\d{9}SE/g)?.length ?? 0
  expect(shown).toBeLessThan(30)
  expect(lines).toContain(`and ${30 - shown} more parcels; enlarge the window to see them`)
  expect(layOut(many, { news: [], pinned: PINNED }, { columns: 80, rows: 50 }).join('\n')).not.toContain('more parcels')
})

test('the live view overwrites its lines and never clears the screen', async () => {
  const written: string[] = []
  const output = Object.assign(new PassThrough(), { columns: 80, rows: 24, isTTY: true })
  output.on('data', (chunk) => written.push(String(chunk)))
  const view = createLiveView(output as unknown as NodeJS.WriteStream)
  const picture = await finishedPicture(0.3, () => null)
  view.show(picture, [])
  view.note('a note')
  view.show(picture, [])
  const text = written.join('')
  for (const clearing of ['[J', '[0J', '[1J', '[2J', '[3J']) expect(text).not.toContain(`${String.fromCharCode(27)}${clearing}`)
  expect(text.split('a note')).toHaveLength(2)
})

test('the suggested commands fit in full below the picture in 80 columns and 24 rows', async () => {
  const picture = await finishedPicture(0.3, (answer) => answer)
  for (const pinned of [pinsOfGuide(STAGE), pinsOfMore(STAGE, picture)]) {
    const lines = layOut(picture, { news: ['push received     AB123456789SE  Created'], pinned }, { columns: 80, rows: 24 })
    expect(lines.slice(-pinned.length)).toEqual(pinned)
    expect(lines.length).toBeLessThan(24)
    expect(pinned.join('\n')).toMatch(/http:\/\/127\.0\.0\.1:65534\b.*[ (]admin \/ /)
    expect(pinned.filter((line) => line.startsWith('curl')).length).toBeGreaterThan(1)
    expect(lines.join('\n')).toMatch(/AB\d{9}SE|[A-Z]{2}\d{9}SE [●○◆]/)
  }
})

test('the introduction, up to the lines to paste, fits 80 columns', () => {
  const stage = {
    ...STAGE,
    replicas: STAGE.replicas.map((replica, at) => ({ ...replica, name: `replica ${at + 1}`, pid: 4_194_304 })),
    subscriber: { url: 'http://127.0.0.1:65532' },
    troubledApps: { onCallUrl: 'http://127.0.0.1:65531/on-call' },
    store: 'embedded PostgreSQL',
    takenPorts: [8080, 8081, 8090, 8091, 8092],
    webhookUrl: 'http://127.0.0.1:65530/webhooks/status',
    sharedKey: 'demo',
  } as unknown as Stage
  const told = { trackingNumber: 'AB123456789SE', parcels: 1000, seconds: 60, loss: 0.2, untilComplete: false, nowMs: 0 }
  for (const shown of [stage, { ...stage, replicas: stage.replicas.slice(0, 1) }]) {
    const [introduction = ''] = presentGuide(shown, told).split('Paste into another terminal')
    expect(introduction.split('\n').filter((line) => line.length > 80)).toEqual([])
  }
})

test('a command is not shown at all on a terminal that is too narrow for it', async () => {
  const picture = await finishedPicture(0.3, () => null)
  const lines = layOut(picture, { news: [], pinned: pinsOfMore(STAGE, picture) }, { columns: 60, rows: 40 })
  expect(lines.join('\n')).not.toContain('curl')
})
