import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { documentedCommands, failedOf, typeInShell } from '../../support/docs/shell-session.ts'
import { pushBody } from '../../support/history/builders.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { ADMIN, push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf } from '../../support/relay/run-command.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'

const eventTime = () => new Date(Date.now() - 2000).toISOString()

test('the portal shows the report with its evidence, and gives it as files', async () => {
  const relay = await relayOfTest({ serve: { fetchUnknown: false } })
  const body = pushBody({ eventTime: eventTime() })
  for (let again = 0; again < 2; again++) expect((await push(relay.publicUrl, body)).status).toBe(200)
  const visitor = await loggedInAt(relay.internalUrl)
  const month = new Date().toISOString().slice(0, 7)
  const page = (await visitor.get(`/report?month=${month}`)).text
  expect(page).toContain('0 of 1 entries lost (0.0 %), 0 late.')
  expect(page).toMatch(/Repeated<\/th><td[^>]*>1<\/td>.*?<a href="\/inbox\/1">1<\/a>/s)
  expect(page).toContain('of these: more than 10 min after the event, or')
  expect((await visitor.get('/carrier')).text).toContain('href="/report"')
  const [html, csv] = [await visitor.get(`/report/${month}/html`), await visitor.get(`/report/${month}/csv`)]
  expect(html.text).toContain('<h1>Carrier report')
  expect(csv.text).toContain('\nrepeated,,1,inbox:1,\n')
  for (const [bad, words] of [
    ['2026-1', 'month must be a month such as'],
    ['2999-01', 'month 2999-01 has not begun'],
    ['2020-01', 'was over before this relay began to count'],
  ] as const) {
    const { status, text } = await visitor.get(`/report?month=${bad}`)
    expect([status, text.includes(words)]).toEqual([400, true])
    const { code, stderr } = await commandsOf(relay)('report', '--month', bad)
    expect([code, stderr.includes(words)]).toEqual([1, true])
  }
})

testWith('bash')('the lines of docs/insight.md write the report', async () => {
  const relay = await relayOfTest({ serve: { fetchUnknown: false } })
  await push(relay.publicUrl, pushBody({ eventTime: eventTime() }))
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'bin'))
  const { args, env } = shipped()
  const program = ['#!/bin/sh', `exec ${[process.execPath, ...args].map((word) => `'${word}'`).join(' ')} "$@"`, ''].join('\n')
  writeFileSync(join(folder, 'bin', 'parcel-relay'), program, { mode: 0o755 })
  const commands = documentedCommands('docs/insight.md', 'report').map((line) => line.replace('http://127.0.0.1:8081', relay.internalUrl))
  const path = `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`
  const typed = await typeInShell(commands, { cwd: folder, env: { ...env, PATH: path, HOME: folder }, answers: [ADMIN.password] })
  expect(failedOf(typed)).toEqual([])
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain('Pushed</th><td class="n">1</td>')
  expect(readFileSync(join(folder, 'report.csv'), 'utf8')).toContain('\npushed,,1,,\n')
})
