import { createCarrierApi } from './carrier-api.ts'
import { controlAnswer } from './control-api.ts'
import { changedFaults } from './faults.ts'
import type { Sandbox, SandboxParcel } from './handle.ts'
import { planWorld } from './hard-cases.ts'
import { startHttp } from './http-server.ts'
import { type SandboxOptions, type Settings, settingsOf, webhookUrlsOf } from './options.ts'
import { type ParcelPlan, spanMs } from './parcel-plan.ts'
import { createPusher, type Pusher } from './pusher.ts'
import { orderedParcel, orderedScan } from './runtime-scan.ts'
import { squeezed } from './squeeze.ts'
import { type CallCounter, createCallCounter, pushStats } from './stats.ts'
import { tallyWorld } from './tally.ts'
import { createTimeline, type Timeline } from './timeline.ts'
import { createTokens, type Tokens } from './tokens.ts'
import { createWorld, type Step, stepsOf, type World } from './world.ts'

/** The settings that can change while the sandbox runs. */
type Controls = Pick<Settings, 'faults' | 'webhookUrls'>

interface Parts {
  readonly settings: Settings
  readonly plans: readonly ParcelPlan[]
  readonly world: World
  readonly tokens: Tokens
  readonly pusher: Pusher
  readonly timeline: Timeline
  readonly calls: CallCounter
  readonly controls: () => Controls
  readonly change: (change: Partial<Controls>) => void
  readonly take: (step: Step) => void
}

/** Plans the parcels, and returns the start and the end of the simulated time and the speed of its clock. */
function planLives(settings: Settings) {
  const { anchorMs, speed, live } = settings
  const startMs = anchorMs - spanMs
  const plans = planWorld(settings)
  if (!live) return { plans, startMs, endMs: anchorMs, speed }
  const squeeze = { fromMs: startMs, toMs: anchorMs, factor: speed }
  return { plans: plans.map((plan) => squeezed(plan, squeeze)), startMs: anchorMs, endMs: anchorMs + spanMs / speed, speed: 1 }
}

function createParts(settings: Settings): Parts {
  const { seed } = settings
  let controls: Controls = { faults: settings.faults, webhookUrls: settings.webhookUrls }
  const faults = () => controls.faults
  const { plans, ...pace } = planLives(settings)
  const world = createWorld(plans, seed, () => faults().languageGaps)
  const pusher = createPusher({ ...settings, timeoutMs: settings.pushTimeoutMs, urls: () => controls.webhookUrls, faults })
  const take = (step: Step): void => {
    const event = world.apply(step)
    if (event !== null) pusher.publish(event)
  }
  const steps = plans.flatMap(stepsOf).toSorted((a, b) => a.atMs - b.atMs)
  return {
    settings,
    plans,
    world,
    pusher,
    take,
    timeline: createTimeline({ steps, ...pace, monotonicMs: () => performance.now(), onStep: take }),
    tokens: createTokens(settings.tokenForm, () => faults().tokenLifetimeMs, settings.now),
    calls: createCallCounter(),
    controls: () => controls,
    change: (change) => {
      controls = { ...controls, ...change }
    },
  }
}

function worldView({ world, pusher, plans }: Parts): Sandbox['world'] {
  const parcels = (): readonly SandboxParcel[] => {
    const pushes = Map.groupBy(pusher.records(), ({ trackingNumber }) => trackingNumber)
    return world.parcels().map((parcel) => ({ ...parcel, pushes: pushes.get(parcel.trackingNumber) ?? [] }))
  }
  const isCalled = (identifier: string) => (parcel: SandboxParcel) =>
    parcel.trackingNumber === identifier || parcel.trackingIds.includes(identifier)
  return { parcels, parcel: (identifier) => parcels().find(isCalled(identifier)) ?? null, tally: tallyWorld(plans) }
}

function createHandle(parts: Parts, url: string, stop: () => Promise<void>): Sandbox {
  const { settings, world, pusher, timeline, tokens, calls, controls, change } = parts
  const view = worldView(parts)
  let ordered = 0
  return {
    url,
    world: view,
    stats: () => ({
      calls: calls.stats(),
      tokensIssued: tokens.issued(),
      pushes: pushStats(pusher.records()),
      tally: view.tally,
      time: { simulated: new Date(timeline.now()).toISOString(), finished: timeline.finished(), speed: settings.speed },
    }),
    faults: () => controls().faults,
    setFaults: (faults) => {
      change({ faults: changedFaults(controls().faults, faults) })
      return controls().faults
    },
    setWebhookUrls: (urls) => change({ webhookUrls: webhookUrlsOf(urls) }),
    revokeTokens: () => tokens.revoke(),
    push: ({ body, sharedKey = settings.sharedKey }) => pusher.post(body, sharedKey),
    now: () => timeline.now(),
    finished: () => timeline.finished(),
    resume: () => timeline.start(),
    advance: async (byMs) => {
      timeline.advance(byMs)
      await pusher.settle()
    },
    finish: async () => {
      timeline.finish()
      await pusher.settle()
    },
    settle: () => pusher.settle(),
    addParcel: (order) => world.add(orderedParcel(order)),
    scan: (trackingNumber, order) => {
      ordered += 1
      const scan = orderedScan(order, trackingNumber, ordered, settings.seed, settings.now())
      parts.take({ kind: 'publish', atMs: scan.publishedAtMs, trackingNumber, scan })
    },
    stop,
  }
}

/** Starts a sandbox carrier. Throws a RangeError for an invalid option, and any error from listening. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = settingsOf(options)
  const parts = createParts(settings)
  const { world, tokens, pusher, timeline, calls, controls } = parts
  const stopping = new AbortController()
  const carrier = createCarrierApi({ ...settings, world, tokens, faults: () => controls().faults, stopping: stopping.signal })
  const server = await startHttp(settings, calls, async (call) => (await carrier(call)) ?? controlAnswer(sandbox, call))
  const sandbox = createHandle(parts, server.url, async () => {
    timeline.stop()
    stopping.abort()
    await Promise.all([pusher.stop(), server.stop()])
  })
  if (!settings.paused) timeline.start()
  return sandbox
}
