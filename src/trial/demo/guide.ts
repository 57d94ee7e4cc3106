import { ABOUT_TROUBLE, madeEvent } from './apps.ts'
import type { Picture } from './picture.ts'
import type { DemoReplica } from './replica-process.ts'
import { ADMIN, SHOP } from './shop.ts'
import type { Stage } from './stage.ts'

export interface GuideOptions {
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

export function presentCompletion({ parcels, replicas, subscriber }: Picture): string {
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
    '',
  ].join('\n')
}

/** Is printed after the completion if the demo goes on. */
export function presentMore(stage: Stage, picture: Picture): string {
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
