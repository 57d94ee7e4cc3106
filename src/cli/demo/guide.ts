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

/** What the demo prints first: what is to be seen, where everything is, and lines to paste. */
export function presentGuide(stage: Stage, options: GuideOptions): string {
  const { relay, carrier, subscriber, webhookUrl, folder, takenPorts } = stage
  const lines = [
    '',
    `parcel relay, a demo: ${options.parcels} parcels live their lives in ${options.seconds} seconds.`,
    `The carrier, a sandbox, loses ${Math.round(options.loss * 100)} % of its pushes, sends some twice and some out`,
    'of order. The relay takes the pushes, asks the carrier for what is missing,',
    'answers apps, and pushes every new event once to a subscriber, whether a push or',
    'a poll brought it.',
    '',
    `  relay, public    ${webhookUrl}`,
    '                   the carrier pushes here',
    `  relay, internal  ${relay.internalUrl}   apps and operators ask here`,
    `  sandbox carrier  ${carrier.url}   its API, and /sandbox/ to control it`,
    `  subscriber       ${subscriber.url}   the relay pushes here`,
    `  logins           ${SHOP.username} / ${SHOP.password} (may ask)`,
    `                   ${ADMIN.username} / ${ADMIN.password} (may also watch and refresh)`,
    `  store            ${folder}/demo.db (removed at the end)`,
    ...(takenPorts.length === 0
      ? []
      : [`  note             port ${takenPorts.join(' and ')} is taken here, so a free one is used instead`]),
    '',
    'To paste into another terminal (bash):',
    '',
    ...linesToPaste(stage, options),
    '',
    options.untilComplete ? 'It ends by itself once every history is complete; Ctrl-C ends it sooner.' : 'Ctrl-C ends the demo.',
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
    '# a token, as at the carrier; then what apps ask: the latest entry of a parcel,',
    '# and its history in Swedish',
    `TOKEN=$(curl -s ${relay.internalUrl}/auth/token ${login} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
    `curl -s -w '\\n' ${bearer} ${parcel}/latest`,
    `curl -s -w '\\n' ${bearer} '${parcel}/all?language=sv'`,
    '# what operators look at',
    `curl -s -w '\\n' ${relay.internalUrl}/readyz`,
    `curl -s ${relay.internalUrl}/metrics | grep ^relay_`,
    '# a push of your own, signed as the carrier signs: 200 means stored; sent again',
    '# it changes nothing; then ask for it',
    `BODY='${eventOf(mine, nowMs)}'`,
    `SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac ${sharedKey} -binary | base64)`,
    `curl -s -w '%{http_code}\\n' ${webhookUrl} -H 'content-type: application/json' -H "x-service-hmac-sha256: $SIGNATURE" -d "$BODY"`,
    `curl -s -w '\\n' ${bearer} ${relay.internalUrl}/v1/status/${mine}/latest`,
  ]
}

/** A parcel the carrier knows nothing of: an event of its own would spoil the comparison with the carrier's histories. */
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

/** What is said once every history is complete. */
export function presentCompletion({ parcels, subscriber }: Picture): string {
  return [
    '',
    `All ${parcels.length} histories are complete: for every parcel the relay's answer to`,
    "all?language=en is byte for byte the carrier's own.",
    `The subscriber was sent ${subscriber.events} events, each signed, whether a push or a poll had`,
    'brought it.',
    '',
  ].join('\n')
}

/** What is said after it if the demo goes on. */
export function presentMore({ relay, carrier }: Stage, { parcels }: Picture): string {
  const trackingNumber = parcels[0]?.trackingNumber ?? ''
  const scan = { trackingNumber, status: 'TerminalUpdated', detailedStatus: 'ParcelUpdated', location: 'Kiruna' }
  return [
    'The demo goes on until Ctrl-C. To give the carrier more to report (after the',
    'second line it pushes nothing any more, so polls must find it):',
    '',
    `curl -s -w '\\n' ${carrier.url}/sandbox/scan -d '${JSON.stringify(scan)}'`,
    `curl -s -w '\\n' ${carrier.url}/sandbox/faults -d '{"silence":true}'`,
    `curl -s ${relay.internalUrl}/metrics | grep -E '^relay_(pushes|polls|missed)'`,
    '',
  ].join('\n')
}
