/** Number of events per parcel. */
export const EVENTS_PER_PARCEL = 7

/** Number of parcels whose events are interleaved, so that consecutive events belong to different parcels. */
const WAVE_PARCELS = 1000

interface Stage {
  readonly status: string
  readonly detailedStatus: string
  readonly shown: boolean
  readonly en: readonly [consumer: string, detailed: string]
  readonly sv: readonly [consumer: string, detailed: string]
}

/** Ends before the delivery, because a delivered parcel is due for a poll at once, which would disturb other measurements. */
const STAGES: readonly Stage[] = [
  stage('Created', 'Created', true, ['We know of your parcel', 'Booked'], ['Vi känner till ditt paket', 'Bokat']),
  stage('Ingested', 'Ingested', true, ['We have your parcel', 'Handed in'], ['Vi har ditt paket', 'Inlämnat']),
  stage('TerminalArrived', 'ArrivedT1', false, ['On its way to you', 'At the first terminal'], ['På väg till dig', 'På första terminalen']),
  stage('TerminalUpdated', 'ParcelUpdated', false, ['On its way to you', 'Weighed anew'], ['På väg till dig', 'Vägt på nytt']),
  stage('TerminalArrived', 'ArrivedT2', true, ['Your parcel is near', 'At the terminal'], ['Ditt paket är nära', 'På terminalen']),
  stage('DeliveryStarted', 'DeliveryStarted', true, ['Out for delivery', 'On the round'], ['Ute för leverans', 'På turen']),
  stage('TerminalArrived', 'ArrivedT3NoAlias', false, ['Back at the depot', 'No alias known'], ['Åter på depån', 'Alias saknas']),
]

const PLACES = ['Stockholm', 'Göteborg', 'Malmö', 'Uppsala', 'Västerås', 'Örebro', 'Linköping', 'Helsingborg', 'Jönköping', 'Norrköping']
const DAY_MS = 86_400_000
const STAGE_MS = 5 * 3_600_000
const LIFE_MS = 3 * DAY_MS

function stage(status: string, detailedStatus: string, shown: boolean, en: Stage['en'], sv: Stage['sv']): Stage {
  return { status, detailedStatus, shown, en, sv }
}

/** Maps consecutive numbers to distinct numbers spread over 32 bits, so that inserts touch the whole index and not only its end. */
function scattered(parcel: number): number {
  return Math.imul(parcel, 0x9e3779b1) >>> 0
}

/** The tracking id of the nth parcel: 18 digits. */
export function trackingId(parcel: number): string {
  return `37300000${String(scattered(parcel)).padStart(10, '0')}`
}

interface EventLooks {
  readonly location?: string
  /** Whether it happened minutes ago. */
  readonly isFresh?: boolean
}

/** How much faster the parcels of fresh events live: within three minutes, so that each is pushed about when it happens. */
const FRESH = 1440

/** Returns a unique event as the carrier would push it, of about 450 bytes. All events of a parcel are before `nowMs`, in the last three days. */
export function eventBody(parcel: number, nth: number, nowMs: number, { location, isFresh = false }: EventLooks = {}): Buffer {
  const { status, detailedStatus, shown, en, sv } = STAGES[nth % STAGES.length] ?? fail()
  const spread = scattered(parcel)
  const agoMs = LIFE_MS - (spread % DAY_MS) - nth * STAGE_MS
  const atMs = nowMs - (isFresh ? Math.round(agoMs / FRESH) : agoMs)
  return Buffer.from(
    JSON.stringify({
      status,
      detailedStatus,
      eventTime: new Date(atMs).toISOString(),
      location: location ?? PLACES[(spread + nth) % PLACES.length],
      trackingIds: [trackingId(parcel)],
      distributionType: 'Mailbox',
      displayToConsumer: shown,
      consumerDescription: [
        { value: sv[0], languageCode: 'sv' },
        { value: en[0], languageCode: 'en' },
      ],
      detailedStatusDescription: [
        { value: sv[1], languageCode: 'sv' },
        { value: en[1], languageCode: 'en' },
      ],
    }),
  )
}

/** Returns the parcel and event number at position `at` of the sequence that starts at `firstParcel`. */
export function eventAt(at: number, firstParcel: number): { readonly parcel: number; readonly nth: number } {
  const waveEvents = WAVE_PARCELS * EVENTS_PER_PARCEL
  const wave = Math.floor(at / waveEvents)
  const within = at % waveEvents
  return { parcel: firstParcel + wave * WAVE_PARCELS + (within % WAVE_PARCELS), nth: Math.floor(within / WAVE_PARCELS) }
}

function fail(): never {
  throw new RangeError('a stage that is none')
}
