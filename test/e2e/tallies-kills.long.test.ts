import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { type RunningProcess, runRelay } from '../support/relay/relay-process.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { storedNumber } from '../support/store/stored-rows.ts'

const SUM = "select coalesce(sum(json_extract(counts, '$.recorded')), 0) from tally where span = 'day' and kind = 'pushes'"
const LOT = 5
/** Counts are saved every ten seconds. The additional time allows for a slow machine. */
const FLUSHED_WITHIN_MS = 13_000

test('kills between two saves lose at most ten seconds of counts, and count nothing twice', async () => {
  const folder = temporaryFolder()
  const config = writeConfig(folder, 'http://127.0.0.1:9', { poll: { cron: '0 0 1 1 *' } })
  const stored = () => storedNumber(join(folder, 'relay.db'), SUM)
  let pushed = 0
  const pushLot = async ({ publicUrl }: RunningProcess) => {
    for (let nth = 0; nth < LOT; nth++)
      expect((await push(publicUrl, pushBody({ trackingIds: [String(10_000_000 + pushed++)] }))).status).toBe(200)
  }
  let counted = 0
  for (let kill = 0; kill < 2; kill++) {
    await using relay = await runRelay(config)
    expect(await stored()).toBe(counted)
    await pushLot(relay)
    await expect.poll(stored, { timeout: FLUSHED_WITHIN_MS }).toBe(counted + LOT)
    counted += LOT
    await pushLot(relay)
    relay.process.kill('SIGKILL')
    await relay.ended
    const after = await stored()
    expect([counted, counted + LOT]).toContain(after)
    counted = after
  }
})
