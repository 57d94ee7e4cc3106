import { execFileSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { stringify } from 'yaml'
import { pushBody } from '../history/builders.ts'
import { temporaryFolder } from '../runner/temporary.ts'
import { push } from './relay.ts'

const TARGET = 'job="parcel-relay",instance="a"'

/** Scrapes the metrics of a relay; rejects if it does not answer. */
export function scrapeOf({ internalUrl }: { readonly internalUrl: string }): () => Promise<string> {
  return async () => await (await fetch(`${internalUrl}/metrics`)).text()
}

/** Waits for a line of the metrics. */
export async function untilShows(relay: { readonly internalUrl: string }, line: string): Promise<void> {
  const name = line.slice(0, line.lastIndexOf(' '))
  const shown = async () => (await scrapeOf(relay)()).split('\n').filter((one) => one.startsWith(`${name} `))
  await expect.poll(shown).toEqual([line])
}

/** What a quiet carrier pushes in a minute. */
export const twoPushes =
  (relay: { readonly publicUrl: string }, headers = {}) =>
  async (minute: number) => {
    for (const nth of [1, 2]) await push(relay.publicUrl, pushBody({ trackingIds: [`${1000 + minute}`], location: `${nth}` }), headers)
  }

/** Scrapes once, for a time in which nothing happens. */
export function once(scrape: () => Promise<string>): () => Promise<string> {
  let scraped: Promise<string> | null = null
  return () => (scraped ??= scrape())
}

/**
 * Records scrapes as Prometheus would make them, one a minute, and plays them to the alert rules. The minutes are Prometheus's own, so an hour takes
 * as long as its scrapes. Instants in the metrics count from the start of the recording.
 */
export function createRecording() {
  const series = new Map<string, string[]>()
  const startedAt = Date.now() / 1000
  let count = 0

  function note(name: string, value: string): void {
    const values = series.get(name) ?? Array.from({ length: count }, () => '_')
    series.set(name, [...values, value])
  }

  function noteScrape(text: string | null): void {
    for (const line of text?.split('\n') ?? []) {
      const [, name = '', labels, value = ''] = /^((?:relay|process)_\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      if (name === '') continue
      const isInstant = /_(?:timestamp|start_time)_seconds$/.test(name)
      note(`${name}{${TARGET}${labels === undefined ? '' : `,${labels}`}}`, isInstant ? String(Number(value) - startedAt) : value)
    }
    note(`up{${TARGET}}`, text === null ? '0' : '1')
    count += 1
    for (const values of series.values()) if (values.length < count) values.push(values.at(-1) === '_' ? '_' : 'stale')
  }

  return {
    /** Lets minutes pass, each with what happens in it and a scrape. Returns the last minute. */
    async pass(minutes: number, scrape: () => Promise<string>, happens: (minute: number) => Promise<unknown> = async () => undefined) {
      for (let at = 0; at < minutes; at++) {
        await happens(at)
        noteScrape(await scrape().catch(() => null))
      }
      return count - 1
    },
    /** Plays the recording to the rules, and fails unless the alerts fire in exactly the given ones of these minutes. */
    expectAlerts(expected: Readonly<Record<string, Readonly<Record<number, 'firing' | 'silent'>>>>): void {
      const folder = temporaryFolder()
      copyFileSync('ops/prometheus/alerts.yaml', join(folder, 'alerts.yaml'))
      const tests = Object.entries(expected).flatMap(([alert, at]) =>
        Object.entries(at).map(([minute, standing]) => ({
          expr: `group(ALERTS{alertname="${alert}",alertstate="firing"})`,
          eval_time: `${minute}m`,
          exp_samples: standing === 'firing' ? [{ labels: '{}', value: 1 }] : [],
        })),
      )
      const input = [...series].map(([name, values]) => ({ series: name, values: values.join(' ') }))
      const played = { interval: '1m', input_series: input, promql_expr_test: tests }
      writeFileSync(
        join(folder, 'played.yaml'),
        stringify({ rule_files: ['alerts.yaml'], evaluation_interval: '1m', tests: [played] }, { lineWidth: 0 }),
      )
      execFileSync('promtool', ['test', 'rules', 'played.yaml'], { cwd: folder, stdio: 'pipe', encoding: 'utf8' })
    },
  }
}
