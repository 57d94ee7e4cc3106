import { setTimeout as delay } from 'node:timers/promises'
import { Command, InvalidArgumentError, Option } from 'commander'
import { fail, untilSignalled, withExitCodes } from '../console/cli/exit-codes.ts'
import type { LoadSections, Section } from '../core/config/schema.ts'
import { ABOUT_TROUBLE, ADMIN, madeEvent, makeTrouble, openShop, SHOP } from './demo/apps.ts'
import { createLineView, createLiveView, createLook } from './demo/live-view.ts'
import { type Happening, happeningsBetween, type Picture, type View } from './demo/picture.ts'
import { type Stage, setStage } from './demo/stage.ts'
import type { DemoReplica } from './demo/start-replicas.ts'

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
export function demoCommand(loadSections: LoadSections): Command {
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
    .action(async (flags: Flags) => run(flags, await loadSections()))
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

async function run(flags: Flags, sections: readonly Section[]): Promise<void> {
  const ending = new AbortController()
  const end = () => ending.abort()
  void untilSignalled().then(end)
  // Also end when the terminal is closed, or when the program that reads the output through a pipe has ended.
  process.once('SIGHUP', end)
  process.stdout.on('error', end)
  const view = process.stdout.isTTY ? createLiveView(process.stdout) : createLineView(process.stdout, () => performance.now())

  const onTrouble = (message: string) => void (ending.signal.aborted || view.note(message))
  if (flags.store === 'postgres') view.note('Starting a PostgreSQL server and two replicas of the relay ...')
  const stage = await setStage({ ...flags, sections, onTrouble })
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
  for (const [nth, { trackingNumber }] of carrier.world.parcels().entries())
    await shop.order(trackingNumber, orderOf(nth), nth === 0 ? IN_A_HURRY : {})
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
    const { events, stalled, recovered } = now.subscriber
    const complete = carrier.finished() && now.parcels.every((parcel) => parcel.complete) && events >= entries && recovered >= stalled
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

interface GuideOptions {
  /** The relay knows this parcel. */
  readonly trackingNumber: string
  readonly parcels: number
  readonly seconds: number
  readonly loss: number
  readonly untilComplete: boolean
  readonly nowMs: number
}

export function presentGuide(stage: Stage, options: GuideOptions): string {
  const { replicas, carrier, subscriber, troubledApps, store, takenPorts } = stage
  const lines = [
    '',
    `parcel relay, a demo: ${options.parcels} parcels are delivered in ${options.seconds} seconds.`,
    `The carrier is a sandbox: it loses ${Math.round(options.loss * 100)} % of its pushes, sends some twice and some`,
    'out of order. The relay receives the pushes, polls the carrier for what is',
    'missing, answers apps, and pushes every new event to a subscriber, whether a',
    'push or a poll brought it.',
    ...(replicas.length > 1 ? ABOUT_REPLICAS : []),
    '',
    ...ABOUT_TROUBLE,
    '',
    ...presentRelays(stage),
    `  sandbox carrier  ${carrier.url}   its API, and /sandbox/ to control it`,
    `  subscriber       ${subscriber.url}   the relay pushes here`,
    `  troubled apps    ${new URL(troubledApps.onCallUrl).origin}   and here`,
    '                   (billing, warehouse, old-shop, on-call)',
    `  logins           ${SHOP.username} / ${SHOP.password} (status)`,
    `                   ${ADMIN.username} / ${ADMIN.password} (status and admin)`,
    `  store            ${store} (deleted at the end)`,
    ...(takenPorts.length === 0
      ? []
      : [`  note             already in use: ${takenPorts.join(', ')}`, '                   the demo uses free ports instead']),
    '',
    'Paste into another terminal (bash):',
    '',
    ...linesToPaste(stage, options),
    ...(replicas.length > 1 ? presentKill(replicas) : []),
    '',
    options.untilComplete ? 'The demo ends once every history is complete; Ctrl-C ends it sooner.' : 'Ctrl-C ends the demo.',
    '',
  ]
  return lines.join('\n')
}

const ABOUT_REPLICAS = [
  'Two replicas of the relay share a PostgreSQL database. Both receive pushes and',
  'answer apps, behind a load balancer. Polling, keeping house and delivering to',
  'each webhook are roles: each is done by one replica at a time.',
]

function presentRelays({ replicas, webhookUrl }: Stage): readonly string[] {
  const [sole, ...others] = replicas
  if (sole === undefined || others.length > 0)
    return [
      `  load balancer    ${webhookUrl}`,
      '                   the carrier pushes here; each push goes to the next replica',
      ...replicas.map(({ name, internalUrl, pid }) => `  ${name}        ${internalUrl}   for apps and operators; pid ${pid}`),
      '                   the portal: open either in a browser, log in as admin',
    ]
  return [
    `  relay, public    ${webhookUrl}`,
    '                   the carrier pushes here',
    `  relay, internal  ${sole.internalUrl}   for apps and operators`,
    '                   the portal: open this address in a browser, log in as admin',
  ]
}

function linesToPaste({ replicas, webhookUrl, sharedKey }: Stage, { trackingNumber, nowMs }: GuideOptions): readonly string[] {
  const internalUrl = replicas[0]?.internalUrl ?? ''
  const parcel = `${internalUrl}/v1/status/${trackingNumber}`
  // The carrier must not know this parcel. Otherwise the relay's history would differ from the carrier's, and the demo would never complete.
  const mine = '990000000000000001'
  const event = madeEvent({ trackingId: mine, eventTime: new Date(nowMs).toISOString(), text: 'Pushed by hand' })
  const bearer = '-H "authorization: Bearer $TOKEN"'
  const login = `-H 'content-type: application/json' -d '${JSON.stringify(SHOP)}'`
  return [
    '# log in as an app; then read the latest entry of a parcel, and its history in',
    '# Swedish',
    `TOKEN=$(curl -s ${internalUrl}/auth/token ${login} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
    `curl -s -w '\\n' ${bearer} ${parcel}/latest`,
    `curl -s -w '\\n' ${bearer} '${parcel}/all?language=sv'`,
    '# for operators: readiness and metrics',
    `curl -s -w '\\n' ${internalUrl}/readyz`,
    `curl -s ${internalUrl}/metrics | grep ^relay_`,
    ...(replicas.length > 1 ? linesAboutReplicas(internalUrl) : []),
    '# send a push of your own, signed as the carrier signs: 200 means stored.',
    '# Sending it again changes nothing. Then read the entry',
    `BODY='${event}'`,
    `SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac ${sharedKey} -binary | base64)`,
    `curl -s -w '%{http_code}\\n' ${webhookUrl} -H 'content-type: application/json' -H "x-service-hmac-sha256: $SIGNATURE" -d "$BODY"`,
    `curl -s -w '\\n' ${bearer} ${internalUrl}/v1/status/${mine}/latest`,
  ]
}

function linesAboutReplicas(internalUrl: string): readonly string[] {
  const login = `-H 'content-type: application/json' -d '${JSON.stringify(ADMIN)}'`
  return [
    '# log in as an operator; then see which replica does what',
    `ADMIN=$(curl -s ${internalUrl}/auth/token ${login} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
    `curl -s -w '\\n' -H "authorization: Bearer $ADMIN" ${internalUrl}/relay/replicas`,
  ]
}

/** These commands are apart from the lines to paste, so that nobody kills a replica by accident. */
function presentKill(replicas: readonly DemoReplica[]): readonly string[] {
  const commands = replicas.map(({ pid }) => `kill -9 ${pid}`).join(' or ')
  return [
    '',
    'To see one replica take over, kill the other without warning:',
    `${commands}. Within six seconds the one that is left does`,
    'everything, and every history still completes.',
  ]
}

/** The lines that stay at the bottom of the terminal while parcels are delivered. They fit into 80 columns. */
export function pinsOfGuide({ replicas }: Stage): readonly string[] {
  const internalUrl = replicas[0]?.internalUrl ?? ''
  return [
    `Open ${internalUrl} and log in as ${ADMIN.username} / ${ADMIN.password};`,
    'or paste into another terminal:',
    `curl -s -w '\\n' ${internalUrl}/readyz`,
    `curl -s ${internalUrl}/metrics | grep ^relay_`,
    'More to paste is above: scroll up. Ctrl-C ends the demo.',
  ]
}

/** The watchdog of config/demo.yaml watches over the parcel with this label. */
const IN_A_HURRY = { priority: 'high' }

/** The number of the order that the shop has given a parcel. */
function orderOf(nth: number): string {
  return `ORDER-${1001 + nth}`
}

function presentCompletion({ parcels, replicas, subscriber }: Picture): string {
  const running = replicas.filter(({ isRunning }) => isRunning).map(({ name }) => name)
  const comparison =
    replicas.length > 1
      ? ['the answer to all?language=en', `(asked of ${running.join(' and ')}) is byte for byte the carrier's own.`]
      : ["the relay's answer to", "all?language=en is byte for byte the carrier's own."]
  return [
    '',
    `All ${parcels.length} histories are complete: for every parcel ${comparison.join('\n')}`,
    `The subscriber (it has "backfill: true") received ${subscriber.events} events, each signed,`,
    'whether a push or a poll brought it.',
    `The parcels have the order numbers ${orderOf(0)} to ${orderOf(parcels.length - 1)}, which each`,
    'event carries as the header relay-reference. The field "Find a parcel" of the',
    'portal finds them too.',
    `Watchdogs: ${subscriber.stalled} stalled, ${subscriber.recovered} recovered. The order ${orderOf(0)} is in a hurry, so a`,
    'rule of config/demo.yaml watches over its parcel. The subscriber was sent what',
    'it told; the page /watchdogs of the portal shows it, and so does',
    `\`parcel-relay watchdogs --reference ${orderOf(0)} --ended\`.`,
    'The report of the carrier, with what it lost and how late it was, is the page',
    '/report of the portal; `parcel-relay report` writes it as a file to print.',
    '',
  ].join('\n')
}

/** Is printed after the completion if the demo goes on. */
function presentMore(stage: Stage, picture: Picture): string {
  return [
    'The demo goes on until Ctrl-C. From now on the carrier loses no push by chance.',
    'Have it report an event, then stop its pushes. If you paste the first command',
    'again, only a poll can find that event:',
    '',
    ...nextCommands(stage, picture),
    '',
  ].join('\n')
}

/** The lines that stay at the bottom of the terminal once every history is complete. They fit into 80 columns. */
export function pinsOfMore(stage: Stage, picture: Picture): readonly string[] {
  const portal = `Portal: ${stage.replicas[0]?.internalUrl ?? ''} (${ADMIN.username} / ${ADMIN.password}); Ctrl-C ends it.`
  return [portal, 'Report an event, stop the pushes, report again, see the counts:', ...nextCommands(stage, picture)]
}

/** No line is longer than 79 characters. */
function nextCommands({ replicas, carrier }: Stage, { parcels }: Picture): readonly string[] {
  const scan = { trackingNumber: parcels[0]?.trackingNumber ?? '', status: 'TerminalUpdated' }
  const [first = '', ...others] = replicas.map(({ internalUrl }) => `${internalUrl}/metrics`)
  return [
    `curl -s -w '\\n' ${carrier.url}/sandbox/scan \\`,
    `  -d '${JSON.stringify(scan)}'`,
    `curl -s -w '\\n' ${carrier.url}/sandbox/faults -d '{"silence":true}'`,
    `curl -s ${first} \\`,
    ...others.map((address) => `  ${address} \\`),
    "  | grep -E '^relay_(pushes|polls|missed)'",
  ]
}
