import { once } from 'node:events'
import { createServer } from 'node:http'
import {
  type Answer,
  type Call,
  callOf,
  carrierPathOf,
  createCarrierApi,
  createTokens,
  errorAnswer,
  send,
  type Tokens,
} from './carrier-api.ts'
import {
  type CallCounter,
  controlAnswer,
  createCallCounter,
  orderedParcel,
  orderedScan,
  pushStats,
  type Sandbox,
  type SandboxParcel,
  tallyWorld,
} from './control-api.ts'
import { changedFaults, type SandboxOptions, type Settings, settingsOf, webhookUrlsOf } from './options.ts'
import { type ParcelPlan, planWorld, spanMs } from './parcel-plan.ts'
import { createPusher, type Pusher } from './pusher.ts'
import { createWorld, type Step, stepsOf, type World } from './world.ts'

/** The settings that can change while the sandbox runs. */
type Controls = Pick<Settings, 'faults' | 'webhookUrls'>

interface Parts {
  readonly settings: Settings
  readonly plans: readonly ParcelPlan[]
  readonly world: World
  readonly tokens: Tokens
  readonly pusher: Pusher
  readonly timeline: ReturnType<typeof createTimeline>
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

interface HttpServer {
  readonly url: string
  /** Closes every connection, including those in use. */
  stop(): Promise<void>
}

/** As in the relay. With Node's default of 5 s, a client on a busy machine may send on a connection that the server is closing. */
const KEEP_ALIVE_MS = 72_000

/** Serves `answer` and counts calls of the carrier's own paths. */
async function startHttp(
  { host, port }: { readonly host: string; readonly port: number },
  calls: CallCounter,
  answer: (call: Call) => Promise<Answer | null>,
): Promise<HttpServer> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    const call = callOf(request)
    answer(call)
      .then((found) => found ?? errorAnswer(404, 'No such path'))
      .catch(() => errorAnswer(500, 'The sandbox itself failed'))
      .then((found) => {
        const path = carrierPathOf(call.path)
        if (path !== null) calls.count(path, found.status)
        send(response, found)
      })
      .catch(() => response.destroy())
  })
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    stop: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

interface Squeeze {
  /** A time in the plan. */
  readonly fromMs: number
  /** The time that replaces it. */
  readonly toMs: number
  /** How many times faster the plan runs: each distance from `fromMs` is divided by this factor. */
  readonly factor: number
}

/** Moves a parcel's plan in time and speeds it up. Instants keep their order, and equal instants stay equal. */
function squeezed(plan: ParcelPlan, { fromMs, toMs, factor }: Squeeze): ParcelPlan {
  const moved = (ms: number): number => {
    const atMs = toMs + Math.round((ms - fromMs) / factor)
    // Avoid whole seconds, because a time without milliseconds counts as exact only to the second.
    return atMs % 1000 === 0 ? atMs + 1 : atMs
  }
  const { scans, amendments, laterTrackingId } = plan
  return {
    ...plan,
    scans: scans.map((scan) => ({ ...scan, atMs: moved(scan.atMs), publishedAtMs: moved(scan.publishedAtMs) })),
    amendments: amendments.map((amendment) => ({ ...amendment, atMs: moved(amendment.atMs) })),
    laterTrackingId: laterTrackingId === null ? null : { ...laterTrackingId, atMs: moved(laterTrackingId.atMs) },
  }
}

const timerMsMax = 2_000_000_000

interface TimelineOptions<Step> {
  /** Oldest first. */
  readonly steps: readonly Step[]
  readonly startMs: number
  readonly endMs: number
  /** Simulated seconds per real second; 0: the clock moves only when advanced. */
  readonly speed: number
  /** Reads a real, monotonic clock, in milliseconds. */
  readonly monotonicMs: () => number
  readonly onStep: (step: Step) => void
}

/** The carrier's simulated clock. It runs from `startMs` to `endMs`, and calls `onStep` with each step at the step's time. */
function createTimeline<Step extends { readonly atMs: number }>(options: TimelineOptions<Step>) {
  const { steps, startMs, endMs, speed, monotonicMs, onStep } = options
  let base = { simulatedMs: startMs, realMs: monotonicMs() }
  let taken = 0
  let running = false
  let timer: NodeJS.Timeout | undefined

  const now = (): number => Math.min(endMs, base.simulatedMs + (running ? (monotonicMs() - base.realMs) * speed : 0))

  const takeDue = (): void => {
    for (let step = steps[taken]; step !== undefined && step.atMs <= now(); step = steps[taken]) {
      taken += 1
      onStep(step)
    }
  }

  const run = (): void => {
    clearTimeout(timer)
    takeDue()
    const next = steps[taken]
    if (!running || speed === 0 || next === undefined) return
    timer = setTimeout(run, Math.min(timerMsMax, Math.max(1, Math.ceil((next.atMs - now()) / speed))))
  }

  /** Advances the clock by simulated milliseconds, and takes the steps that fall into this time. */
  const advance = (byMs: number): void => {
    base = { simulatedMs: now() + byMs, realMs: monotonicMs() }
    run()
  }

  return {
    now,
    finished: () => taken === steps.length,
    advance,
    /** Advances the clock to its end. */
    finish: () => advance(endMs - now()),
    start: () => {
      base = { simulatedMs: now(), realMs: monotonicMs() }
      running = true
      run()
    },
    stop: () => {
      base = { simulatedMs: now(), realMs: monotonicMs() }
      running = false
      clearTimeout(timer)
    },
  }
}
