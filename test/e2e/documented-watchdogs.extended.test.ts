import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, expect, vi } from 'vitest'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { documentedCommands, failedOf, typeInShell } from '../support/docs/shell-session.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

afterAll(closeOpened)

testWith('bash')('the lines of docs/insight.md show which parcels are stalled, and try a rule', async () => {
  const carrier = await openCarrier()
  const rule = { name: 'no-scan', when: { status: ['Ingested'] }, notWithin: '48h', past: true }
  const relay = await relayOfTest({ watchdogs: [rule] }, { carrierUrl: carrier.url })
  const eventTime = new Date(Date.now() - 3 * 86_400_000).toISOString()
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB123456789SE'], status: 'Ingested', detailedStatus: 'Ingested', eventTime }))
  const operate = await operatorOf(relay)
  await operate('PUT', '/relay/parcels/AB123456789SE', { reference: 'ORDER-1207' })
  await vi.waitFor(async () => expect((await operate('GET', '/relay/watchdogs')).body).toMatchObject({ watchdogs: [{ open: 1 }] }), 30_000)
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'bin'))
  const { args, env } = shipped()
  const program = ['#!/bin/sh', `exec ${[process.execPath, ...args].map((word) => `'${word}'`).join(' ')} "$@"`, ''].join('\n')
  writeFileSync(join(folder, 'bin', 'parcel-relay'), program, { mode: 0o755 })
  const commands = documentedCommands('docs/insight.md', 'watchdogs').map((one) => one.replace('http://127.0.0.1:8081', relay.internalUrl))
  const path = `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`
  const typed = await typeInShell(commands, { cwd: folder, env: { ...env, PATH: path, HOME: folder }, answers: [ADMIN.password] })
  expect(failedOf(typed)).toEqual([])
  expect(JSON.stringify(typed)).toMatch(
    /ORDER-1207 +370000000000000001 +no-scan +Ingested, and nothing within 2d.*slow +370000000000000001/,
  )
})
