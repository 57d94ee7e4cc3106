import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { metricsWith } from '../../support/relay/relay-metrics.ts'
import { testWith } from '../../support/runner/test-with.ts'

const FOLDER = 'ops/prometheus'
const BASE = 'https://relay.internal/docs/runbooks#'

const rule = z.strictObject({
  alert: z.string().regex(/^Relay[A-Za-z]+$/),
  expr: z.string(),
  for: z.string().regex(/^[1-9]\d*[smh]$/),
  labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
  annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook_url: z.string().startsWith(BASE) }),
})
const rules = z
  .strictObject({ groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule) })) })
  .parse(parse(readFileSync(`${FOLDER}/alerts.yaml`, 'utf8')))
  .groups.flatMap((group) => group.rules)

/** Returns the metrics as a relay shows them, after each has been counted once. */
async function renderMetrics(): Promise<string> {
  const metrics = metricsWith()
  const { meter } = metrics
  meter.pushReceived('recorded', 0)
  meter.refusalExplained(['other_key'])
  meter.batchCommitted(1, 1)
  meter.pollEnded('found')
  meter.missedPush(1)
  meter.deliveryAttempted({ id: '1', name: 'shop' }, 'accepted', 1)
  meter.merged('recorded', 1)
  meter.rebuilt({ equal: 1, differing: 0, corrected: 0, left: 0 })
  meter.erased(1)
  meter.served('hit')
  return (await metrics.render()).body
}

function metricsIn(expr: string): readonly string[] {
  return [...expr.matchAll(/\b(?:relay|process|nodejs)_[a-z0-9_]+|\bup(?=\{)/g)].map(([name]) => name)
}

async function knownMetrics(): Promise<ReadonlySet<string>> {
  const names = [...(await renderMetrics()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  )
  return new Set(['up', ...names])
}

/** Returns the ids of the headings as the manual makes them. */
function headings(): ReadonlySet<string> {
  const text = readFileSync('docs/runbooks.md', 'utf8')
  return new Set([...text.matchAll(/^### (.+)$/gm)].map(([, title = '']) => title.toLowerCase().replaceAll('`', '').replaceAll(' ', '-')))
}

test('every alert has a name of its own, a severity, a waiting time, and a runbook that exists', () => {
  expect(rules.length).toBeGreaterThan(20)
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
  const known = headings()
  const links = rules.map(({ annotations }) => annotations.runbook_url.slice(BASE.length))
  expect(links.filter((heading) => !known.has(heading))).toEqual([])
})

test('every metric in an alert or on the dashboard is one that a relay shows', async () => {
  const known = await knownMetrics()
  const dashboard = readFileSync('ops/grafana/parcel-relay.json', 'utf8')
  const names = [...rules.flatMap(({ expr }) => metricsIn(expr)), ...metricsIn(dashboard.replaceAll('\\"', '"'))]
  expect(names.length).toBeGreaterThan(50)
  // Two metrics have no value until the first backup or retention pass, but the relay shows their names from the start.
  expect([...new Set(names)].filter((name) => !known.has(name))).toEqual([])
})

/** Returns each counter that an expression reads, with the values that it asks of one of its labels. */
function selectors(expr: string): readonly { readonly name: string; readonly label: string; readonly values: readonly string[] }[] {
  return [...expr.matchAll(/\b(relay_\w+_total)(?:\{([^}]*)\})?/g)].flatMap(([, name = '', matchers = '']) => [
    { name, label: '', values: [''] },
    ...[...matchers.matchAll(/(\w+)=~?"([^"$]+)"/g)].map(([, label = '', values = '']) => ({ name, label, values: values.split('|') })),
  ])
}

test('every counter that an alert or the dashboard watches is at 0 at the start', async () => {
  const dashboard = readFileSync('ops/grafana/parcel-relay.json', 'utf8').replaceAll('\\"', '"')
  const lines = (await metricsWith({ keys: () => 2 }).render()).body.split('\n')
  const watched = [...rules.map(({ expr }) => expr), dashboard].flatMap(selectors)
  expect(watched.length).toBeGreaterThan(10)
  const isAtZero = (name: string, label: string, value: string) =>
    lines.some((line) => line.startsWith(name) && line.includes(label && `${label}="${value}"`) && line.endsWith(' 0'))
  const lacks = watched.flatMap(({ name, label, values }) =>
    values.filter((value) => !isAtZero(name, label, value)).map((value) => `${name} ${label} ${value}`),
  )
  expect(lacks).toEqual([])
})

test('whatever a relay counts later, each counter that is watched has existed at 0', async () => {
  const metrics = metricsWith()
  const names = (text: string) => [...text.matchAll(/^(relay_\w+_total(?:\{.*\})?) /gm)].map(([, series = '']) => series)
  const early = new Set(names((await metrics.render()).body))
  for (const outcome of ['recorded', 'duplicate', 'quarantined', 'expired', 'erased', 'check', 'storage_unavailable'])
    metrics.meter.pushReceived(outcome, 0)
  for (const outcome of ['signature_invalid', 'body_too_large', 'overloaded', 'wrong_path', 'wrong_path_unsigned'])
    metrics.meter.pushReceived(outcome, null)
  for (const reason of ['found', 'not_found', 'rejected', 'rate_limited'] as const) metrics.meter.pollEnded(reason)
  for (const outcome of ['accepted', 'rejected', 'failed'] as const) metrics.meter.deliveryAttempted({ id: '1', name: 'shop' }, outcome, 1)
  for (const result of ['hit', 'fetched', 'stale', 'not_found', 'unavailable'] as const) metrics.meter.served(result)
  metrics.meter.missedPush(1)
  expect(names((await metrics.render()).body).filter((series) => !early.has(series))).toEqual([])
})

test('the manual’s table has every metric of the relay', async () => {
  const manual = readFileSync('docs/operating.md', 'utf8')
  const own = [...(await renderMetrics()).matchAll(/^# TYPE (relay_\S+) /gm)].map(([, name = '']) => name)
  expect(own.filter((name) => !manual.includes(name))).toEqual(['relay_build_info'])
})

test('no alert and no panel reads a metric that is NaN when unknown', async () => {
  const text = await renderMetrics()
  const unsure = [...text.matchAll(/^# HELP (\S+) .*NaN/gm)].map(([, name = '']) => name)
  expect(unsure).toEqual(['relay_restore_deliveries_repeatable'])
  const restores = [{ atMs: 1, backup: 'a', madeAtMs: 1, from: 1, to: 2, delivered: null, isTold: true }]
  const shown = (await metricsWith({ restores }).render()).body
  expect([...shown.matchAll(/^(relay_\S+) NaN$/gim)].map(([, name]) => name)).toEqual(unsure)
  const watching = [readFileSync(`${FOLDER}/alerts.yaml`, 'utf8'), readFileSync('ops/grafana/parcel-relay.json', 'utf8')].join('')
  expect(unsure.filter((name) => watching.includes(name))).toEqual([])
})

test('each panel of the dashboard has an id, a title, a query and a position of its own', () => {
  const panel = z.looseObject({
    id: z.int(),
    type: z.string(),
    title: z.string().min(1),
    gridPos: z.strictObject({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
    targets: z.array(z.looseObject({ expr: z.string().min(1), refId: z.string() })).optional(),
  })
  const { panels } = z.looseObject({ panels: z.array(panel) }).parse(JSON.parse(readFileSync('ops/grafana/parcel-relay.json', 'utf8')))
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const covered = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  )
  expect(new Set(covered).size).toBe(covered.length)
  expect(panels.filter(({ type, targets }) => type !== 'row' && (targets ?? []).length === 0)).toEqual([])
})

test('the tests of the rules try each alert both silent and firing', () => {
  const tried = z.object({
    tests: z.array(z.object({ alert_rule_test: z.array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) })) })),
  })
  const cases = tried.parse(parse(readFileSync(`${FOLDER}/alerts.test.yaml`, 'utf8'))).tests.flatMap((one) => one.alert_rule_test)
  for (const { alert } of rules) {
    const counts = cases.filter(({ alertname }) => alertname === alert).map(({ exp_alerts }) => exp_alerts.length)
    expect([alert, counts.includes(0), counts.includes(1)]).toEqual([alert, true, true])
  }
})

testWith('promtool')('promtool accepts the rules and the example config, and every test of a rule passes', () => {
  const run = (...args: readonly string[]) => execFileSync('promtool', args, { cwd: FOLDER, encoding: 'utf8', stdio: 'pipe' })
  expect(run('check', 'rules', 'alerts.yaml')).toContain(`${rules.length} rules found`)
  expect(run('check', 'config', 'prometheus.yaml')).toContain('SUCCESS')
  expect(run('test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS')
})

testWith('promtool')('promtool finds nothing wrong with the names of our metrics', async () => {
  const { stderr, stdout, error } = spawnSync('promtool', ['check', 'metrics'], { input: await renderMetrics(), encoding: 'utf8' })
  expect(error).toBeUndefined()
  // promtool also warns about the metrics of Node, but the client library chooses their names.
  const lines = `${stdout}${stderr}`.split('\n').filter((line) => line !== '' && !line.startsWith('nodejs_'))
  expect(lines).toEqual([])
})
