export const languages = ['en', 'sv'] as const

export type Language = (typeof languages)[number]

export interface LanguageTexts {
  readonly consumer: string
  readonly detailed: string
}

/** Texts by language. If a language is missing, the carrier has no texts in it. */
export type Texts = Readonly<Partial<Record<Language, LanguageTexts>>>

export interface Word {
  readonly status: string
  readonly detailedStatus: string
  readonly displayToConsumer: boolean
  readonly texts: Texts
}

function word(
  status: string,
  detailedStatus: string,
  displayToConsumer: boolean,
  en: readonly [string, string],
  sv: readonly [string, string],
): Word {
  const texts = { en: { consumer: en[0], detailed: en[1] }, sv: { consumer: sv[0], detailed: sv[1] } }
  return { status, detailedStatus, displayToConsumer, texts }
}

/** The statuses that the carrier's specification shows, with their detailed status and texts. */
export const words = {
  created: word(
    'Created',
    'Created',
    true,
    ['We know of your parcel', 'Booking received'],
    ['Vi känner till ditt paket', 'Bokning mottagen'],
  ),
  ingested: word(
    'Ingested',
    'Ingested',
    true,
    ['We have your parcel', 'Handed in by the sender'],
    ['Vi har fått ditt paket', 'Inlämnat av avsändaren'],
  ),
  arrivedT1: word('TerminalArrived', 'ArrivedT1', false, ['', 'Scanned at the first terminal'], ['', 'Skannat på första terminalen']),
  updated: word('TerminalUpdated', 'ParcelUpdated', false, ['', 'Measured and weighed again'], ['', 'Mätt och vägt på nytt']),
  arrivedT2: word(
    'TerminalArrived',
    'ArrivedT2',
    true,
    ['Your parcel is near', 'Scanned at the second terminal'],
    ['Ditt paket är nära', 'Skannat på andra terminalen'],
  ),
  deliveryStarted: word(
    'DeliveryStarted',
    'DeliveryStarted',
    true,
    ['On its way to you', 'Loaded on the round'],
    ['På väg till dig', 'Lastat på turen'],
  ),
  arrivedT3: word('TerminalArrived', 'ArrivedT3NoAlias', false, ['', 'At the depot, no alias'], ['', 'På depån, alias saknas']),
  delivered: word(
    'DeliverySucceeded',
    'DeliverySucceededMailbox',
    true,
    ['Delivered to your mailbox', 'Left in the mailbox'],
    ['Levererat i din brevlåda', 'Lämnat i brevlådan'],
  ),
} as const

/** Statuses that the specification does not show. The carrier may use such statuses too. */
export const unknownWords: readonly [Word, ...Word[]] = [
  word(
    'CustomsReleased',
    'DutyPaidOnline',
    true,
    ['Customs are done', 'Duty paid on the web'],
    ['Tullen är klar', 'Tull betald på webben'],
  ),
  word('TerminalUpdated', 'SortedBySide7', false, ['', 'Sorted by machine 7'], ['', 'Sorterat av maskin 7']),
  word(
    'ReturnConsidered',
    'return.considered/åter',
    true,
    ['We may return it', 'Sender asked for it back'],
    ['Det kan gå i retur', 'Avsändaren vill ha det åter'],
  ),
]

/** Every status and detailed status that the specification shows. */
export const shownWords: ReadonlySet<string> = new Set(
  Object.values(words).flatMap(({ status, detailedStatus }) => [status, detailedStatus]),
)

export const places: readonly [string, ...string[]] = [
  ...(['Malmö', 'Göteborg', 'Örebro', 'Västerås', 'Umeå', 'Luleå', 'Åre', 'Kiruna', 'Jönköping', 'Gävle'] as const),
  ...(['Tromsø', 'Ålesund', 'Bodø', 'Århus', 'Køge', 'Sønderborg', 'Jyväskylä', 'Hämeenlinna', 'Ísafjörður', 'Tórshavn'] as const),
]

export const distributionTypes: readonly [string, ...string[]] = ['Mailbox', 'Doorstep', 'PickupPoint']
