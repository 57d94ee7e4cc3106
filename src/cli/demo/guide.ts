import type { Picture } from './picture.ts'
import { ADMIN, SHOP } from './shop.ts'
import type { Stage } from './stage.ts'

export interface GuideOptions {
  /** A parcel that the relay knows already. */
  readonly trackingNumber: string
  readonly parcels: number
  readonly seconds: number
  readonly loss: number
  readonly untilComplete: boolean
  readonly nowMs: number
}

/** The demo's introduction: what it shows, the addresses, and commands to paste. */
export function presentGuide(stage: Stage, options: GuideOptions): string {
  const { relay, carrier, subscriber, webhookUrl, folder, takenPorts } = stage
  const lines = [
    '',
    `parcel relay, a demo: ${options.parcels} parcels are delivered in ${options.seconds} seconds.`,
    `The carrier is a sandbox: it loses ${Math.round(options.loss * 100)} % of its pushes, sends some twice and some out`,
    'of order. The relay receives the pushes, polls the carrier for what is missing,',
    'answers apps, and pushes every new event to a subscriber, whether a push or a',
    'poll brought it.',
    '',
    `  relay, public    ${webhookUrl}`,
    '                   the carrier pushes here',
    `  relay, internal  ${relay.internalUrl}   for apps and operators`,
    `  sandbox carrier  ${carrier.url}   its API, and /sandbox/ to control it`,
    `  subscriber       ${subscriber.url}   the relay pushes here`,
    `  logins           ${SHOP.username} / ${SHOP.password} (status)`,
    `                   ${ADMIN.username} / ${ADMIN.password} (status and admin)`,
    `  store            ${folder}/demo.db (deleted at the end)`,
    ...(takenPorts.length === 0 ? [] : [`  note             already in use: ${takenPorts.join(', ')}; the demo uses free ports instead`]),
    '',
    'Paste into another terminal (bash):',
    '',
    ...linesToPaste(stage, options),
    '',
    options.untilComplete ? 'The demo ends once every history is complete; Ctrl-C ends it sooner.' : 'Ctrl-C ends the demo.',
    '',
  ]
  return lines.join('\n')
}

function linesToPaste({ relay, webhookUrl, sharedKey }: Stage, { trackingNumber, nowMs }: GuideOptions): readonly string[] {
  const parcel = `${relay.internalUrl}/v1/status/${trackingNumber}`
  const mine = '990000000000000001'
  const bearer = '-H "authorization: Bearer $TOKEN"'
  const login = `-H 'content-type: application/json' -d '${JSON.stringify(SHOP)}'`
  return [
    '# log in as an app; then read the latest entry of a parcel, and its history in',
    '# Swedish',
    `TOKEN=$(curl -s ${relay.internalUrl}/auth/token ${login} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
    `curl -s -w '\\n' ${bearer} ${parcel}/latest`,
    `curl -s -w '\\n' ${bearer} '${parcel}/all?language=sv'`,
    '# for operators: readiness and metrics',
    `curl -s -w '\\n' ${relay.internalUrl}/readyz`,
    `curl -s ${relay.internalUrl}/metrics | grep ^relay_`,
    '# send a push of your own, signed as the carrier signs: 200 means stored.',
    '# Sending it again changes nothing. Then read the entry',
    `BODY='${eventOf(mine, nowMs)}'`,
    `SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac ${sharedKey} -binary | base64)`,
    `curl -s -w '%{http_code}\\n' ${webhookUrl} -H 'content-type: application/json' -H "x-service-hmac-sha256: $SIGNATURE" -d "$BODY"`,
    `curl -s -w '\\n' ${bearer} ${relay.internalUrl}/v1/status/${mine}/latest`,
  ]
}

/** An event of a parcel that the carrier does not know, so that it does not spoil the comparison with the carrier's histories. */
function eventOf(trackingId: string, nowMs: number): string {
  return JSON.stringify({
    status: 'TerminalArrived',
    detailedStatus: 'ArrivedT1',
    eventTime: new Date(nowMs).toISOString(),
    location: 'Kiruna',
    trackingIds: [trackingId],
    distributionType: 'Mailbox',
    displayToConsumer: true,
    consumerDescription: [{ value: 'Pushed by hand', languageCode: 'en' }],
    detailedStatusDescription: [{ value: 'Pushed by hand from a terminal', languageCode: 'en' }],
  })
}

/** Printed once every history is complete. */
export function presentCompletion({ parcels, subscriber }: Picture): string {
  return [
    '',
    `All ${parcels.length} histories are complete: for every parcel the relay's answer to`,
    "all?language=en is byte for byte the carrier's own.",
    `The subscriber received ${subscriber.events} events, each signed, whether a push or a poll`,
    'brought it.',
    '',
  ].join('\n')
}

/** Printed after that if the demo goes on. */
export function presentMore({ relay, carrier }: Stage, { parcels }: Picture): string {
  const trackingNumber = parcels[0]?.trackingNumber ?? ''
  const scan = { trackingNumber, status: 'TerminalUpdated', detailedStatus: 'ParcelUpdated', location: 'Kiruna' }
  return [
    'The demo goes on until Ctrl-C. Give the carrier more to report; after the second',
    'command it sends no more pushes, so polls must find new events:',
    '',
    `curl -s -w '\\n' ${carrier.url}/sandbox/scan -d '${JSON.stringify(scan)}'`,
    `curl -s -w '\\n' ${carrier.url}/sandbox/faults -d '{"silence":true}'`,
    `curl -s ${relay.internalUrl}/metrics | grep -E '^relay_(pushes|polls|missed)'`,
    '',
  ].join('\n')
}
