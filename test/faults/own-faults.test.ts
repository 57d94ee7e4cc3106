import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { damageOf, storedBodies } from '../support/store/stored-rows.ts'

const SECRET = 'canary-0123456789-canary'

/** Every thread loads this code before the relay's own code. It fails in the thread that the file `fail` names. */
const FAULT = `
import { existsSync, readFileSync } from 'node:fs'
import { isMainThread, threadName } from 'node:worker_threads'

const name = isMainThread ? 'main' : threadName
const timer = setInterval(() => {
  if (!existsSync(process.env.FAIL)) return
  const [whom, how] = readFileSync(process.env.FAIL, 'utf8').split(' ')
  if (whom !== name) return
  clearInterval(timer)
  const error = new Error('a fault of its own, Bearer ${SECRET}')
  if (how === 'throws') throw error
  void Promise.reject(error)
})
timer.unref()
`

const FAULTS = [
  ['main', 'throws', 'internal fault; the relay exits so that its supervisor restarts it'],
  ['writer', 'rejects', 'the relay cannot go on; it exits so that its supervisor restarts it'],
  ['main', 'rejects', 'internal fault; the relay exits so that its supervisor restarts it'],
  ['receiver', 'throws', 'the relay cannot go on; it exits so that its supervisor restarts it'],
] as const

test.each(FAULTS.slice(0, byForm(1, FAULTS.length)))(
  'X3: if thread "%s" %s, uncaught, the relay logs it, exits with 1 and loses nothing',
  async (whom, how, message) => {
    const folder = temporaryFolder()
    const preload = join(folder, 'fault.mjs')
    writeFileSync(preload, FAULT)
    const fail = join(folder, 'fail')
    const config = writeConfig(folder, NO_CARRIER)
    const pushes = distinctPushes(10)
    await using relay = await runRelay(config, { NODE_OPTIONS: `--import=${pathToFileURL(preload).href}`, FAIL: fail })
    const logged = relay.logged(message)
    const load = startLoad(relay.publicUrl, 16, pushes.next)
    await load.untilAnswered(100)
    writeFileSync(fail, `${whom} ${how}`)
    expect(await relay.ended).toEqual({ code: 1, signal: null })

    const line = await logged
    expect(JSON.parse(line)).toMatchObject({ level: 'error', err: { message: expect.stringContaining('a fault of its own') } })
    expect(line).not.toContain(SECRET)
    const acknowledged = (await load.stop()).filter(({ status }) => status === 200)
    expect(acknowledged.length).toBeGreaterThanOrEqual(100)
    const place = join(folder, 'relay.db')
    expect(await damageOf(place)).toBeNull()
    const kept = await storedBodies(place)
    expect(acknowledged.filter(({ body }) => !kept.has(body))).toEqual([])
  },
)
