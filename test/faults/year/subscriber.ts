import { startRequestServer } from '../../support/network/request-server.ts'
import { expectedSignature } from '../../support/network/webhook-receiver.ts'
import { keyOf, plantedIn, type YearParcel } from './parcels.ts'
import type { Violations } from './violations.ts'

/** The shop that gets the relay's deliveries. It checks signatures and order, and tracks which events it still must get. */
export interface Subscriber extends AsyncDisposable {
  readonly url: string
  key: string
  /** How the shop answers signed events: always with 204, with an occasional 500, or always with 503. */
  mood: 'well' | 'flaky' | 'down'
  /** Notes a scan of the carrier that the shop must get. */
  owe(parcel: YearParcel, scan: YearParcel['scans'][number]): void
  /** Names the events from before `beforeMs` that the shop should have got, but lacks. */
  owedSince(beforeMs: number): readonly string[]
  /** Expects no more events about a parcel, because the parcel is erased. */
  forget(parcel: YearParcel): void
  /** Call it after a restore. Then the next event of a parcel need not follow the last one that the shop got. */
  relayRestored(): void
  readonly received: () => number
  /** Returns the highest `relay-sequence` that was received. */
  readonly lastSequence: () => number
}

interface Owed {
  readonly parcel: number
  readonly atMs: number
}

interface Heard {
  sequence: number
  /** Whether the event came before a restore. */
  isFromBefore: boolean
}

export async function startSubscriber(violations: Violations, random: () => number): Promise<Subscriber> {
  const owed = new Map<string, Owed>()
  const erased = new Set<number>()
  const heard = new Map<number, Heard>()
  const events = new Map<string, string>()
  let [received, lastSequence] = [0, 0]

  function take(body: Buffer, header: (name: string) => string): void {
    const event: unknown = JSON.parse(body.toString())
    const [parcel = -1] = plantedIn(body.toString())
    const scan = scanOf(event)
    const [id, sequence, previous] = [header('webhook-id'), Number(header('relay-sequence')), Number(header('relay-previous-sequence'))]
    received += 1
    lastSequence = Math.max(lastSequence, sequence)
    const name = `${parcel} ${scan}`
    const before = events.get(id)
    if (before !== undefined && before !== name) violations.add(`webhook-id ${id} named two events: ${before}; ${name}`)
    events.set(id, name)
    if (erased.has(parcel)) {
      violations.add(`an event of the erased parcel ${parcel} was delivered: ${scan}`)
      return
    }
    if (before === undefined) {
      const last = heard.get(parcel)
      if (last !== undefined && sequence <= last.sequence)
        violations.add(`parcel ${parcel} was told ${scan} as sequence ${sequence} after sequence ${last.sequence}`)
      const isNext = previous === 0 || last === undefined || last.isFromBefore || previous === last.sequence
      if (!isNext) violations.add(`parcel ${parcel}: sequence ${sequence} is said to come after ${previous}, not after ${last.sequence}`)
      heard.set(parcel, { sequence, isFromBefore: false })
    }
    owed.delete(name)
  }

  const { port, [Symbol.asyncDispose]: dispose } = await startRequestServer((request, body, response) => {
    const header = (name: string) => String(request.headers[name] ?? '')
    if (subscriber.mood === 'down') return void response.writeHead(503).end()
    const signature = expectedSignature(body, subscriber.key)
    const isSigned = [header('x-service-hmac-sha256'), header('x-service-hmac-sha256-next')].includes(signature)
    if (!isSigned) return void response.writeHead(401).end()
    if (subscriber.mood === 'flaky' && random() < 0.3) return void response.writeHead(500).end()
    take(body, header)
    response.writeHead(204).end()
  })
  const subscriber: Subscriber = {
    url: `http://127.0.0.1:${port}/parcels`,
    key: '',
    mood: 'well',
    owe: ({ number }, scan) => void owed.set(`${number} ${keyOf(scan)}`, { parcel: number, atMs: scan.atMs }),
    owedSince: (beforeMs) => [...owed].flatMap(([name, { atMs }]) => (atMs < beforeMs ? [name] : [])),
    forget({ number }) {
      erased.add(number)
      for (const [name, { parcel }] of owed) if (parcel === number) owed.delete(name)
    },
    relayRestored() {
      for (const one of heard.values()) one.isFromBefore = true
    },
    received: () => received,
    lastSequence: () => lastSequence,
    [Symbol.asyncDispose]: dispose,
  }
  return subscriber
}

/** Returns the key of an event in the form of `keyOf`. Reads either format of the carrier. */
function scanOf(event: unknown): string {
  const { status, detailedStatus, eventTime, occurredAt } = Object(event)
  return keyOf({ status: String(status), detailedStatus: String(detailedStatus), atMs: Date.parse(String(eventTime ?? occurredAt)) })
}
