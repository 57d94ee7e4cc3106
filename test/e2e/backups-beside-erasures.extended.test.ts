import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { searchForNames, tablesWith } from '../support/erasure/traces.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { type RunningProcess, runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { killedAtCommit } from '../support/runner/killed-at-commit.ts'
import { casesOf } from '../support/runner/long-form.ts'
import { drawWith, seeded } from '../support/runner/seeded.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { storedNumber } from '../support/store/stored-rows.ts'

const NAMES = ['GONE0001', 'GONE0002', 'GONE0003', 'GONE0004']

/** A relay's folder, in which relays follow each other after kills. */
function createWorld() {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  const sections = { poll: { cron: '0 0 1 1 *' }, backup: { directory } }
  return { folder, directory, sections, config: writeConfig(folder, NO_CARRIER, sections), place: join(folder, 'relay.db') }
}

type World = ReturnType<typeof createWorld>

/** Orders erasures and backups at once, in a random order, and kills the relay at a random step of them. */
async function oneRound(
  world: World,
  relay: RunningProcess,
  draw: ReturnType<typeof drawWith>,
  name: string,
  backup: string,
): Promise<void> {
  const operate = await operatorOf(relay)
  const acts = [
    () => operate('DELETE', `/relay/parcels/${name}`),
    () => operate('POST', '/relay/backups', { name: backup }),
    () => push(relay.publicUrl, pushBody({ trackingIds: [draw.pick(NAMES)] })),
  ]
  writeFileSync(join(world.folder, 'armed'), '')
  const running: Promise<unknown>[] = []
  while (acts.length > 0) {
    const [act] = acts.splice(draw.below(acts.length), 1)
    // What meets a killed relay gets no answer.
    const answered = (act?.() ?? Promise.resolve()).catch(() => null)
    running.push(answered)
    if (draw.below(2) === 0) await answered
  }
  await Promise.all(running)
  await untilNoJob(operate)
}

/** Also when the relay was killed. */
async function untilNoJob(operate: Awaited<ReturnType<typeof operatorOf>>): Promise<void> {
  const jobs = async () =>
    await operate('GET', '/relay/jobs')
      .then(({ text }) => text)
      .catch(() => '')
  await expect.poll(jobs).not.toMatch(/"state":"(?:waiting|running)"/)
}

/** Waits until no job runs, and returns which backups the last report of each erasure names. */
async function namedBackups(relay: RunningProcess, erased: readonly string[]): Promise<ReadonlyMap<string, readonly unknown[]>> {
  const operate = await operatorOf(relay)
  await untilNoJob(operate)
  const named = new Map<string, readonly unknown[]>()
  for (const name of erased) {
    await expect.poll(async () => (await operate('DELETE', `/relay/parcels/${name}`)).text).not.toContain('being searched')
    const { status, body } = await operate('DELETE', `/relay/parcels/${name}`)
    expect([name, status, body.backupsUnreadable]).toEqual([name, 200, null])
    named.set(name, Array.isArray(body.backups) ? body.backups : [])
  }
  return named
}

/** Restores a backup in a copy of the relay's folder, and starts the relay. */
async function expectNothingBack(world: World, file: string, erased: readonly string[], which: string): Promise<void> {
  const folder = join(temporaryFolder(), 'copy')
  cpSync(world.folder, folder, { recursive: true })
  const config = writeConfig(folder, NO_CARRIER, { ...world.sections, backup: { directory: join(folder, 'backups') } })
  const { args, env } = shipped()
  const restored = spawnSync(process.execPath, [...args, 'restore', '--config', config, file, '--yes'], { env, encoding: 'utf8' })
  expect([which, restored.status, restored.stderr]).toEqual([which, 0, expect.any(String)])
  const place = join(folder, 'relay.db')
  {
    await using _after = await runRelay(config)
    expect([which, await tablesWith(searchForNames(erased), place)]).toEqual([which, []])
    expect([which, await storedNumber(place, 'select count(*) from parcel')]).toEqual([which, expect.any(Number)])
  }
  rmSync(folder, { recursive: true })
}

test('a backup beside an erasure is named by its report, or clean, and brings nothing back', async () => {
  let held = 0
  for (let seed = 1; seed <= casesOf(40, 2); seed++) {
    const draw = drawWith(seeded(seed))
    const world = createWorld()
    {
      await using first = await runRelay(world.config)
      for (const name of [...NAMES, 'KEPT0001']) expect((await push(first.publicUrl, pushBody({ trackingIds: [name] }))).status).toBe(200)
    }
    const erased: string[] = []
    for (const [at, name] of NAMES.slice(0, 3).entries()) {
      rmSync(join(world.folder, 'armed'), { force: true })
      await using relay = await runRelay(
        world.config,
        draw.below(2) === 0 ? {} : killedAtCommit(1 + draw.below(45), join(world.folder, 'armed')),
      )
      await oneRound(world, relay, draw, name, `b${at}`)
      erased.push(name)
    }
    await using last = await runRelay(world.config)
    const named = await namedBackups(last, erased)
    const files = existsSync(world.directory) ? readdirSync(world.directory).filter((file) => file.endsWith('.db')) : []
    for (const file of files) {
      const bytes = readFileSync(join(world.directory, file)).toString('latin1')
      const holds = searchForNames(erased)(bytes)
      held += holds.length
      for (const name of holds)
        expect([`seed ${seed}`, file, name, named.get(name)]).toEqual([
          `seed ${seed}`,
          file,
          name,
          expect.arrayContaining([file.slice(0, -3)]),
        ])
    }
    await last[Symbol.asyncDispose]()
    for (const file of files) await expectNothingBack(world, join(world.directory, file), erased, `seed ${seed}, ${file}`)
  }
  expect(held).toBeGreaterThan(0)
})
