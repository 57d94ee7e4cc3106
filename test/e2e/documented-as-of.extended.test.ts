import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { documentedCommands, failedOf, typeInShell } from '../support/docs/shell-session.ts'
import { pushBody } from '../support/history/builders.ts'
import { ADMIN, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

const DOCUMENTED = '2026-03-01T09:00:00Z'

testWith('bash')('the lines of docs/insight.md tell what was known, how an app was answered, and what was learnt since', async () => {
  const relay = await relayOfTest()
  const folder = temporaryFolder()
  const { args, env } = shipped()
  const program = ['#!/bin/sh', `exec ${[process.execPath, ...args].map((word) => `'${word}'`).join(' ')} "$@"`, ''].join('\n')
  writeFileSync(join(folder, 'parcel-relay'), program, { mode: 0o755 })
  await push(relay.publicUrl, pushBody({ trackingIds: ['95100001'], status: 'Created', texts: { sv: 'Skapad' } }))
  const atMs = Date.now()
  while (Date.now() <= atMs) await new Promise((resolve) => setTimeout(resolve, 1))
  await push(relay.publicUrl, pushBody({ trackingIds: ['95100001'], status: 'DeliveryStarted', eventTime: '2026-03-01T12:00:00Z' }))
  const commands = documentedCommands('docs/insight.md', 'as-of').map((command) =>
    command.replace('http://127.0.0.1:8081', relay.internalUrl).replaceAll(DOCUMENTED, new Date(atMs).toISOString()),
  )
  const path = `${folder}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`
  const typed = await typeInShell(commands, { cwd: folder, env: { ...env, PATH: path, HOME: folder }, answers: [ADMIN.password] })
  expect(failedOf(typed)).toEqual([])
  const [asOf, json, since] = typed.slice(-3).map(({ output }) => output)
  expect(asOf).toContain('as known at')
  expect(asOf).toContain('an app would have got (')
  expect(asOf).not.toContain('DeliveryStarted')
  expect(json).toContain('Skapad')
  expect(since).not.toContain('an app')
  expect(since).toMatch(/DeliveryStarted.*new by push/)
})
