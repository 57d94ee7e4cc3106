import { equal } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { figure } from '../figures.ts'
import { cpuMsOfChildren, usageOf } from '../servers/process-usage.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { SHOP } from '../servers/relay-config.ts'
import { contentsOf } from '../stores/contents.ts'
import { copyPrefilledStore } from '../stores/prefill.ts'
import type { Bench, Observation, SuiteReport } from '../suite.ts'

const PAGE = 500

/** Exports a million events in each format, beside a reader that only counts the events of the same pages. */
export async function exporting({ settings, relayEntry, folder, say }: Bench): Promise<SuiteReport> {
  const storePath = join(folder, 'exported.db')
  await copyPrefilledStore(settings.scale.storedParcels, storePath, say)
  const { entries: events } = contentsOf(storePath)
  const relay = await startRelay(relayEntry, folder, { storePath })
  let exports = 0
  const observations: Observation[] = []
  const timed = async (name: string, work: () => Promise<unknown>) => {
    const [startMs, before, childrenMs] = [performance.now(), usageOf(relay.pid), cpuMsOfChildren()]
    await work()
    const seconds = (performance.now() - startMs) / 1000
    const facts = {
      seconds: seconds.toFixed(1),
      'relay cpu s': ((usageOf(relay.pid).cpuMs - before.cpuMs) / 1000).toFixed(1),
      'export cpu s': ((cpuMsOfChildren() - childrenMs) / 1000).toFixed(1),
    }
    observations.push({ name, facts })
    say(`${name}: ${JSON.stringify(facts)}`)
    return seconds
  }
  const exportAs = async (format: string) => {
    const to = join(folder, `warehouse-${exports++}`)
    const seconds = await timed(`export as ${format}`, () => runExport(relayEntry, relay, ['--to', to, '--format', format]))
    equal(rowsIn(to), events, 'every event is exported')
    return seconds
  }
  try {
    const reading = await timed('reading the feed alone', async () => equal(await countEvents(relay), events, 'every event is read'))
    const [ndjson, csv, parquet] = [await exportAs('ndjson'), await exportAs('csv'), await exportAs('parquet')]
    const perMillion = (seconds: number) => [(seconds / events) * 1_000_000]
    const time = { unit: 's', better: 'lower', must: 120, aim: 20 } as const
    return {
      figures: [
        figure('export: a million events as NDJSON', perMillion(ndjson), time),
        figure('export: a million events as CSV', perMillion(csv), time),
        figure('export: a million events as Parquet', perMillion(parquet), time),
        figure('reading the feed of a million events alone', perMillion(reading), { unit: 's', better: 'lower' }),
        figure('export as NDJSON / reading the feed alone', [ndjson / reading], { unit: 'x', better: 'lower' }),
      ],
      observations,
    }
  } finally {
    await relay.stop()
  }
}

async function runExport(entry: string, relay: RelayServer, args: readonly string[]): Promise<void> {
  const login = { RELAY_URL: relay.internalUrl, RELAY_USERNAME: SHOP.username, RELAY_PASSWORD: SHOP.password }
  const child = spawn(process.execPath, [entry, 'export', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...login },
  })
  const [code] = await once(child, 'exit')
  equal(code, 0, 'the export ends well')
}

function rowsIn(directory: string): number {
  const manifest: { readonly files: readonly { readonly rows: number }[] } = JSON.parse(
    readFileSync(join(directory, 'manifest.json'), 'utf8'),
  )
  return manifest.files.reduce((sum, { rows }) => sum + rows, 0)
}

/** Reads the feed page by page. Parses each page, as any reader must. */
async function countEvents(relay: RelayServer): Promise<number> {
  const token = await relay.logIn()
  let count = 0
  for (let after = 0; ; ) {
    const response = await relay.ask(`/relay/events?after=${after}&limit=${PAGE}`, token)
    const page: { readonly events: readonly unknown[]; readonly next: number } = JSON.parse(await response.text())
    if (page.events.length === 0) return count
    count += page.events.length
    after = page.next
  }
}
