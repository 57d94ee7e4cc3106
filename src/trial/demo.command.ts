import { setTimeout as delay } from 'node:timers/promises'
import { Command, InvalidArgumentError, Option } from 'commander'
import { fail, untilSignalled, withExitCodes } from '../console/cli/exit-codes.ts'
import { makeTrouble } from './demo/apps.ts'
import { pinsOfGuide, pinsOfMore, presentCompletion, presentGuide, presentMore } from './demo/guide.ts'
import { createLineView, createLiveView, createLook } from './demo/live-view.ts'
import { type Happening, happeningsBetween, type Picture, type View } from './demo/picture.ts'
import { openShop } from './demo/shop.ts'
import { type Stage, setStage } from './demo/stage.ts'

interface Flags {
  readonly store: 'sqlite' | 'postgres'
  readonly parcels: number
  readonly seconds: number
  readonly seed: number
  readonly loss: number
  readonly freePorts: boolean
  readonly untilComplete: boolean
}

const LOOK_EVERY_MS = 500
/** With --until-complete, every history must be complete within this time after the last event. */
const PATIENCE_MS = 60_000

/** `parcel-relay demo`: also makes trouble to look at in the portal. */
export function demoCommand(): Command {
  const command = new Command('demo')
    .description(
      'run a relay between a sandbox carrier that loses pushes and a subscriber that receives every event (config/demo.yaml, a temporary store)',
    )
    .addOption(
      new Option('--store <engine>', 'postgres: two replicas that share a PostgreSQL server, which the demo starts itself')
        .choices(['sqlite', 'postgres'])
        .default('sqlite'),
    )
    .option('--parcels <number>', 'number of parcels', whole(1, 500), 30)
    .option('--seconds <number>', 'time from the first event to the last delivery', whole(1, 3600), 50)
    .option('--seed <number>', 'the same seed gives the same events', whole(0, 1_000_000), 1)
    .option('--loss <fraction>', 'fraction of pushes that the carrier loses', fraction, 0.2)
    .option('--free-ports', 'use any free ports instead of 8080 to 8082 and 8090 to 8092', false)
    .option('--until-complete', 'end as soon as every history is complete; exit with 1 if that takes too long', false)
    .action(run)
  return withExitCodes(command)
}

function whole(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`Write a whole number from ${min} to ${max}.`)
    return value
  }
}

function fraction(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!(value <= 1)) throw new InvalidArgumentError('Write a fraction from 0 to 1.')
  return value
}

async function run(flags: Flags): Promise<void> {
  const ending = new AbortController()
  const end = () => ending.abort()
  void untilSignalled().then(end)
  // Also end when the terminal is closed, or when the program that reads the output through a pipe has ended.
  process.once('SIGHUP', end)
  process.stdout.on('error', end)
  const view = process.stdout.isTTY ? createLiveView(process.stdout) : createLineView(process.stdout, () => performance.now())

  const onTrouble = (message: string) => void (ending.signal.aborted || view.note(message))
  if (flags.store === 'postgres') view.note('Starting a PostgreSQL server and two replicas of the relay ...')
  const stage = await setStage({ ...flags, onTrouble })
  void stage.died.then((error) => {
    if (ending.signal.aborted) return
    fail(`the relay failed: ${String(error)}`)
    end()
  })
  try {
    await play(stage, view, flags, ending.signal)
  } finally {
    const asked = ending.signal.aborted
    end()
    await stage.stop()
    view.end(`${asked ? 'Stopped' : 'Done'}. Everything that the demo started has ended, and the store is deleted.`)
  }
}

async function play(stage: Stage, view: View, flags: Flags, ending: AbortSignal): Promise<void> {
  const { carrier, replicas, subscriber, troubledApps } = stage
  const shop = await openShop(replicas)
  for (const { trackingNumber } of carrier.world.parcels()) await shop.watch(trackingNumber)
  // Events name a parcel by its tracking id, but the demo shows tracking numbers.
  const byTrackingNumber = (news: Happening): Happening => ({
    ...news,
    trackingNumber: carrier.world.parcel(news.trackingNumber)?.trackingNumber ?? news.trackingNumber,
  })
  const look = createLook(carrier, shop, subscriber)
  const giveUpAtMs = performance.now() + flags.seconds * 1000 + PATIENCE_MS
  carrier.resume()

  let before: Picture | null = null
  let guided = false
  let completed = false
  while (!ending.aborted) {
    const now = await look()
    const known = now.parcels.find(({ events }) => events.some(({ mark }) => mark !== 'missing'))
    if (!guided && known !== undefined) {
      // The guide waits until it can name a parcel that the relay knows.
      view.note(presentGuide(stage, { ...flags, trackingNumber: known.trackingNumber, nowMs: Date.now() }))
      view.pin(pinsOfGuide(stage))
      guided = true
      // Make trouble only after the guide is shown, because the guide announces the warnings that the relay will log.
      await makeTrouble(carrier, shop, troubledApps)
    }
    if (guided) {
      view.show(now, [...happeningsBetween(before, now), ...subscriber.takeNews().map(byTrackingNumber)])
      before = now
    }
    const entries = carrier.world.parcels().reduce((sum, parcel) => sum + parcel.entries, 0)
    const complete = carrier.finished() && now.parcels.every((parcel) => parcel.complete) && now.subscriber.events >= entries
    if (complete && !completed) view.note(presentCompletion(now))
    if (complete && flags.untilComplete) return
    if (complete && !completed) {
      // The relay polls a delivered parcel again only after a push about it, so the push of the next event must not be lost.
      carrier.setFaults({ loss: 0 })
      view.note(presentMore(stage, now))
      view.pin(pinsOfMore(stage, now))
    }
    completed ||= complete
    if (flags.untilComplete && performance.now() > giveUpAtMs)
      return fail('some histories were not complete, or did not reach the subscriber, in time')
    await delay(LOOK_EVERY_MS, undefined, { signal: ending }).catch(() => undefined)
  }
}
