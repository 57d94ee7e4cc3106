import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../../faults/world.ts'
import { answerBody, pushBody } from '../../support/history/builders.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { commandsOf } from '../../support/relay/run-command.ts'
import { changeStoredRows } from '../../support/store/stored-rows.ts'

async function start() {
  const world = await startWorld()
  onTestFinished(() => world.stop())
  return { ...world, run: commandsOf(world) }
}

test('history and refresh ask the carrier about a tracking number whose parcel is not known yet', async () => {
  const { carrier, run, ...world } = await start()
  carrier.says.set('WA300000001SE', () => answerBody({ trackingIds: ['75000001'] }))
  expect((await world.push(pushBody({ trackingIds: ['75000001'] }))).status).toBe(200)
  const shown = await run('history', 'wa300000001se')
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringMatching(/^WA300000001SE \(tracking number\), 75000001 \(tracking id\)\n/)])
  carrier.says.set('WA300000002SE', () => answerBody({ trackingIds: ['75000002'] }))
  expect((await run('refresh', 'WA300000002SE')).stdout).toBe('WA300000002SE: recorded (1 of 1)\n')
  expect((await run('refresh', 'WA300000003SE')).stdout).toMatch(
    /^WA300000003SE: unknown \(1 of 1\)\n1 parcel is unknown: the carrier knows none of the identifiers that the relay has\./,
  )
  const unknown = await run('history', 'WA300000003SE')
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('neither does the carrier, which was asked now')])
  carrier.setDown(true)
  expect(await run('history', 'WA300000004SE')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The carrier cannot be asked now.'),
  })
})

test('history shows the order of a parcel, and where it has none no line', async () => {
  const { run, ...world } = await start()
  const operate = await operatorOf(world)
  await operate('PUT', '/relay/parcels/75000013', { reference: 'ORDER-1207', labels: { shop: 'north', gift: '' }, note: 'first\nsecond' })
  const { stdout } = await run('history', '75000013')
  expect(stdout).toMatch(/^75000013 .*\norder ORDER-1207 {2}gift= {2}shop=north\nnote first second\nnext check /)
  await operate('PUT', '/relay/parcels/75000013', {})
  expect((await run('history', '75000013')).stdout).toMatch(/^75000013 .*\nnext check /)
})

test('an operator’s refresh of an erased identifier causes no call', async () => {
  const { carrier, ...world } = await start()
  expect((await world.push(pushBody({ trackingIds: ['75000003'] }))).status).toBe(200)
  const operate = await operatorOf(world)
  expect((await operate('DELETE', '/relay/parcels/75000003')).status).toBe(200)
  expect((await operate('POST', '/relay/parcels/75000003/refresh')).body).toMatchObject({ type: 'urn:parcel-relay:error:erased' })
  expect(carrier.callsAbout('75000003')).toBe(0)
})

test('inbox lists pushes whose signature did not match, and why', async () => {
  const { run, publicUrl, databasePath } = await start()
  expect((await run('inbox', '--refused')).stdout).toBe('No push was refused for its signature.\n')
  const refused = 'insert into refused_pushes (process, cause, from_ms, until_ms, count) values (?, ?, ?, ?, ?)'
  await changeStoredRows(databasePath, refused, 'another', 'not_stored', Date.now(), Date.now(), 12)
  expect((await run('inbox', '--refused')).stdout).toBe(
    'No push was refused for its signature.\nIn the last day 12 more requests were answered with 503 and not kept: parcel-relay status says when, and whether they have come again.\n',
  )
  const answer = await fetch(`${publicUrl}/webhooks/status`, {
    method: 'POST',
    body: 'body',
    headers: { 'x-service-hmac-sha256': 'short' },
  })
  expect(answer.status).toBe(401)
  await expect
    .poll(async () => (await run('inbox', '--refused')).stdout, { timeout: 60_000 })
    .toMatch(/^RECEIVED +FROM +BYTES +WHY\n.* ago +127\.0\.0\.1 +(4|not read) +\S/)
  expect(JSON.parse((await run('inbox', '--refused', '--json')).stdout)).toMatchObject({ refusals: [{ address: '127.0.0.1' }], next: null })
  expect(await run('inbox', '--refused', '--state', 'recorded')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--refused takes'),
  })
})

test('inbox shows what is wrong in a push, and reprocess exits with 1 if the push stays wrong', async () => {
  const { run, ...world } = await start()
  expect((await run('inbox')).stdout).toBe('The inbox is empty.\n')
  await world.push(pushBody({ trackingIds: ['75000004'] }))
  expect((await run('inbox', '--state', 'quarantined')).stdout).toBe('No push is quarantined.\n')
  expect(await run('inbox', '--reprocess', '--state', 'quarantined')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('nothing to reprocess'),
  })
  await world.push(pushBody({ trackingIds: ['75000005'], eventTime: 'yesterday' }))
  const { stdout } = await run('inbox')
  expect(stdout).toMatch(
    /^ID +RECEIVED +PARCEL +STATUS +STATE +WHY +BYTES\n2 .* ago +75000005 +TerminalArrived +quarantined +eventTime is not a UTC time \(eventTime: "?yesterday"?\) +\d+\n1 /,
  )
  const renamed = JSON.parse(pushBody({ trackingIds: ['75000006'] }).toString())
  await world.push(JSON.stringify({ ...renamed, eventTime: undefined, eventTimestamp: renamed.eventTime }))
  expect((await run('inbox', '--limit', '1')).stdout).toContain(
    'eventTime is not a UTC time (eventTime is missing, and eventTimestamp is unknown)',
  )
  const again = await run('inbox', '--reprocess', '2')
  expect(again).toMatchObject({
    code: 1,
    stdout: '2: quarantined (eventTime is not a UTC time), 1 of 1\n',
    stderr: '1 push is still not recorded.\n',
  })
})
