import { setTimeout as delay } from 'node:timers/promises'
import { Command, InvalidArgumentError } from 'commander'
import { presentCompletion, presentGuide, presentMore } from './demo/guide.ts'
import { type Happening, happeningsBetween } from './demo/happenings.ts'
import { createLineView } from './demo/line-view.ts'
import { createLiveView } from './demo/live-view.ts'
import { createLook } from './demo/look.ts'
import type { Picture } from './demo/picture.ts'
import { openShop } from './demo/shop.ts'
import { type Stage, setStage } from './demo/stage.ts'
import type { View } from './demo/view.ts'
import { fail, withExitCodes } from './exit-codes.ts'
import { untilSignalled } from './signals.ts'

interface Flags {
  readonly parcels: number
  readonly seconds: number
  readonly seed: number
  readonly loss: number
  readonly freePorts: boolean
  readonly untilComplete: boolean
}

const LOOK_EVERY_MS = 500
/** With --until-complete: how long after the last event every history must be complete. */
const PATIENCE_MS = 60_000

/** `parcel-relay demo`: a relay, a carrier that loses pushes, and a subscriber that gets every event, to be watched. */
export function demoCommand(): Command {
  const command = new Command('demo')
    .description(
      'a relay between a sandbox carrier that loses pushes and a subscriber that gets everything (config/demo.yaml, a temporary store)',
    )
    .option('--parcels <number>', 'how many parcels live', whole(1, 500), 30)
    .option('--seconds <number>', 'how long their lives take', whole(1, 3600), 50)
    .option('--seed <number>', 'the same seed, the same lives', whole(0, 1_000_000), 1)
    .option('--loss <fraction>', 'fraction of the pushes that the carrier loses', fraction, 0.2)
    .option('--free-ports', 'any free ports instead of 8080, 8081, 8090 and 8091', false)
    .option('--until-complete', 'end as soon as every history is complete; exit code 1 if that takes too long', false)
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
  // A terminal that was closed, or a pipe that nobody reads any more.
  process.once('SIGHUP', end)
  process.stdout.on('error', end)
  const view = process.stdout.isTTY ? createLiveView(process.stdout) : createLineView(process.stdout, () => performance.now())

  const onTrouble = (message: string) => void (ending.signal.aborted || view.note(`relay: ${message}`))
  const stage = await setStage({ ...flags, onTrouble })
  void stage.relay.died.then((error) => {
    if (ending.signal.aborted) return
    fail(`the relay cannot go on: ${String(error)}`)
    end()
  })
  try {
    await play(stage, view, flags, ending.signal)
  } finally {
    const asked = ending.signal.aborted
    end()
    await stage.stop()
    view.end(`${asked ? 'Stopped' : 'Done'}: the relay, the carrier and the subscriber have ended, and the store is removed.`)
  }
}

async function play(stage: Stage, view: View, flags: Flags, ending: AbortSignal): Promise<void> {
  const { carrier, relay, subscriber } = stage
  const shop = await openShop(relay.internalUrl)
  for (const { trackingNumber } of carrier.world.parcels()) await shop.watch(trackingNumber)
  // An event names a parcel by its tracking ids; the rest of the demo by what a person types.
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
      // Not sooner: the lines to paste name a parcel that can be asked for.
      view.note(presentGuide(stage, { ...flags, trackingNumber: known.trackingNumber, nowMs: Date.now() }))
      guided = true
    }
    if (guided) {
      view.show(now, [...happeningsBetween(before, now), ...subscriber.takeNews().map(byTrackingNumber)])
      before = now
    }
    const entries = carrier.world.parcels().reduce((sum, parcel) => sum + parcel.entries, 0)
    const complete = carrier.finished() && now.parcels.every((parcel) => parcel.complete) && now.subscriber.events >= entries
    if (complete && !completed) view.note(presentCompletion(now))
    if (complete && flags.untilComplete) return
    if (complete && !completed) view.note(presentMore(stage, now))
    completed ||= complete
    if (flags.untilComplete && performance.now() > giveUpAtMs)
      return fail('not every history became complete, or reached the subscriber, in time')
    await delay(LOOK_EVERY_MS, undefined, { signal: ending }).catch(() => undefined)
  }
}
