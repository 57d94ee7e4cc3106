import { z } from 'zod'
import { isDiskFull } from '../../core/domain/admin/disk-room.ts'
import { bytesText, counted, spanText } from '../../core/domain/amounts.ts'
import { typedName } from '../../core/domain/delivery/endpoint-state.ts'
import { type CoreOperatorEvents, WAITED_COUNTED_MAX } from '../../core/domain/delivery/operator-event.ts'
import { reasonText } from '../../core/domain/ingest/fault-in-body.ts'
import { type AnswerOf, instant, named, numberedId, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { isLikelyKey, type Word } from '../problems/words.ts'

export interface OperatorWords {
  readonly kind: 'bad' | 'warn' | 'off' | 'ok' | 'none'
  /** What is in which state, in two words or three. */
  readonly state: string
  /** A sentence without its full stop. */
  readonly sentence: readonly Word[]
  /** The page of the portal to look at. */
  readonly page: string
}

/**
 * What is told of an event, and its members besides its name and time. `of` reads a member as text. The text is empty if another version of the relay
 * recorded no such member.
 */
export interface EventDescription<Members = Readonly<Record<string, unknown>>> extends Pick<OperatorWords, 'kind' | 'state'> {
  readonly page: string | ((of: Reader) => string)
  readonly tell: (of: Reader) => readonly Word[]
  /** Called only for the API document. */
  readonly members: () => { readonly [Member in keyof Members]: z.ZodType<Members[Member]> }
}

/** Descriptions of events by their names, as a wing offers them. */
export type EventDescriptions = Readonly<Record<string, EventDescription>>

/** The events that are described, for the interface `OperatorEvents`. */
export type EventsOf<Described extends EventDescriptions> = {
  readonly [Name in keyof Described]: {
    readonly [Member in keyof ReturnType<Described[Name]['members']>]: AnswerOf<() => ReturnType<Described[Name]['members']>[Member]>
  }
}

type Reader = (name: string) => string

const name = (text: string): Word => ({ kind: 'name', text })
export const time = (text: string): Word => ({ kind: 'time', text })

export const text = () => z.string()
export const texts = () => z.array(z.string())
/** The amount of each kind of data. */
export const amounts = () => z.record(z.string(), wholeNumber())
export const since = () => instant().describe('When it began.')
const lastPushAt = () => instant().nullable().describe('When the last push came that reported something new.')
const endpointNamed = () => z.strictObject({ id: numberedId(), name: z.string() })

const ofEndpoint = (of: Reader) => `/webhooks/${encodeURIComponent(of('endpoint.id'))}`

function tellDiskFull(of: Reader): string {
  const [free, least] = [bytesText(Number(of('freeBytes'))), bytesText(Number(of('freeBytesMin')))]
  return `The store’s disk is full: pushes are refused and nothing is polled; apps are still served. ${free} are free, ${least} are needed`
}

/** A disk may fill so fast that it is full at once. Then both events are sent. */
function tellDiskLow(of: Reader): string {
  const room = { freeBytes: Number(of('freeBytes')), freeBytesMin: Number(of('freeBytesMin')) }
  const [free, least] = [bytesText(room.freeBytes), bytesText(room.freeBytesMin)]
  return isDiskFull(room)
    ? `The store’s disk runs out of room: ${free} are free. That is too little to take pushes, of which an event of its own tells; this one ends later, once there is room to spare`
    : `The store’s disk is nearly full: ${free} are free. The relay does all its work until less than ${least} are free, and then refuses pushes`
}

function downIn(of: Reader): readonly Word[] {
  const words: Word[] = []
  for (let at = 0; of(`down.${at}.startedAt`) !== ''; at++)
    words.push(
      at === 0 ? ' The relay did not run all the time: it was last seen at ' : ', and last seen at ',
      time(of(`down.${at}.lastSeenAt`)),
      ' and started at ',
      time(of(`down.${at}.startedAt`)),
    )
  return words.length === 0 ? [] : [...words, '; what was pushed in between got no answer and is not counted.']
}

const DISABLED_BECAUSE: ReadonlyMap<string, string> = new Map([
  ['gone', 'answered 410 Gone and was disabled'],
  ['failing', 'failed for 120 h and was disabled'],
  ['unnamed', 'was disabled, because no config names it any more'],
])

function failureIn(of: Reader): string {
  const [status, reason, answer] = [of('failure.status'), of('failure.reason'), of('failure.answer')]
  if (status === '') return reason === '' ? '' : `. It gives no answer (${reason.replaceAll('_', ' ')})`
  return `. It answers ${status}${answer === '' ? '' : ` ("${answer}")`}${isLikelyKey(Number(status)) ? ', so it may have another key' : ''}`
}

function recoveryIn(of: Reader): string {
  const waited = Number(of('waited'))
  const most = waited >= WAITED_COUNTED_MAX ? 'At least ' : ''
  return `, after ${spanText(Number(of('downForMs')))}. ${most}${counted(waited, 'event', 'events')} waited for it`
}

/** The events of the core and the console. An event without a line here does not compile. */
const OWN_EVENTS: { readonly [Name in keyof CoreOperatorEvents]: EventDescription<CoreOperatorEvents[Name]> } = {
  endpoint_failing: {
    kind: 'bad',
    state: 'webhook failing',
    page: ofEndpoint,
    tell: (of) => [
      name(of('endpoint')),
      ' has failed every attempt since ',
      time(of('since')),
      `${failureIn(of)}. Look: parcel-relay endpoints show ${typedName({ id: of('endpoint.id'), name: of('endpoint') })}`,
    ],
    members: () => ({
      endpoint: endpointNamed(),
      since: since(),
      failure: z
        .strictObject({
          status: wholeNumber().nullable(),
          reason: z.string().nullable().describe('Why there was no answer.'),
          answer: z.string().describe('The first line of the answer; `#` stands for each word with a digit.'),
        })
        .nullable()
        .describe('Its last failure; null: not known.'),
    }),
  },
  endpoint_recovered: {
    kind: 'ok',
    state: 'webhook recovered',
    page: ofEndpoint,
    tell: (of) => [name(of('endpoint')), ` accepts events again${recoveryIn(of)}`],
    members: () => ({
      endpoint: endpointNamed(),
      since: since(),
      downForMs: wholeNumber().describe('For how long the endpoint had failed.'),
      waited: wholeNumber().describe(`How many events waited for it then; ${WAITED_COUNTED_MAX}: this many or more.`),
    }),
  },
  endpoint_disabled: {
    kind: 'off',
    state: 'webhook disabled',
    page: ofEndpoint,
    tell: (of) => [name(of('endpoint')), ` ${DISABLED_BECAUSE.get(of('because')) ?? `was disabled: ${of('because')}`}`],
    members: () => ({ endpoint: endpointNamed(), because: z.enum(['gone', 'failing', 'unnamed']) }),
  },
  endpoint_removed: {
    kind: 'off',
    state: 'webhook removed',
    page: '/webhooks',
    tell: (of) => [name(of('endpoint')), ' was removed: no config names it any more'],
    members: () => ({ endpoint: endpointNamed() }),
  },
  credentials_refused: {
    kind: 'bad',
    state: 'password refused',
    page: '/carrier',
    tell: () => ['The carrier refuses our password'],
    members: () => ({}),
  },
  credentials_accepted: {
    kind: 'ok',
    state: 'password accepted',
    page: '/carrier',
    tell: () => ['The carrier accepts our password again'],
    members: () => ({ since: since() }),
  },
  carrier_failing: {
    kind: 'bad',
    state: 'carrier failing',
    page: '/carrier',
    tell: (of) => [
      'The carrier fails: ',
      { kind: 'carrier', text: of('reason'), status: of('status') || undefined },
      ', since ',
      time(of('since')),
    ],
    members: () => ({
      reason: z.string().nullable(),
      status: wholeNumber().nullable().describe('The HTTP status of the reply to the last call; null: that is not why it failed.'),
      since: instant().describe('When the first of the questions in a row was not answered.'),
    }),
  },
  carrier_recovered: {
    kind: 'ok',
    state: 'carrier recovered',
    page: '/carrier',
    tell: (of) => [
      'The carrier answers again; it had not since ',
      time(of('since')),
      '. Polls that waited are made now. Which ones failed meanwhile, and when they are made again: parcel-relay parcels',
    ],
    members: () => ({ since: since() }),
  },
  pushes_silent: {
    kind: 'bad',
    state: 'pushes silent',
    page: '/carrier',
    tell: () => ['No pushes arrive although the carrier scans: polls go back to their full rate'],
    members: () => ({ lastPushAt: lastPushAt() }),
  },
  pushes_lossy: {
    kind: 'warn',
    state: 'pushes lossy',
    page: '/carrier',
    tell: () => ['Pushes arrive, and too many are lost'],
    members: () => ({ lastPushAt: lastPushAt() }),
  },
  pushes_trusted: {
    kind: 'ok',
    state: 'pushes trusted',
    page: '/carrier',
    tell: () => ['Pushes arrive again, and few are lost'],
    members: () => ({ lastPushAt: lastPushAt() }),
  },
  pushes_quarantined: {
    kind: 'warn',
    state: 'pushes quarantined',
    page: '/inbox',
    tell: (of) => [
      `${counted(Number(of('count')), 'push was', 'pushes were')} not understood since `,
      time(of('since')),
      `: ${reasonText(of('reason'))}`,
    ],
    members: () => ({
      reason: z.string(),
      count: wholeNumber().describe('How many such pushes have come since `since`.'),
      since: instant().describe('When the first of these pushes came.'),
    }),
  },
  pushes_not_understood: {
    kind: 'bad',
    state: 'pushes not understood',
    page: '/inbox',
    tell: (of) => ['No push has been understood since ', time(of('since')), `: all go into quarantine: ${reasonText(of('reason'))}`],
    members: () => ({
      reason: z.string(),
      since: instant().describe('When the first of the pushes that were not understood came.'),
    }),
  },
  pushes_understood: {
    kind: 'ok',
    state: 'pushes understood',
    page: '/inbox',
    tell: () => ['Pushes are understood again. The ones in quarantine still wait for you'],
    members: () => ({ since: since() }),
  },
  disk_low: {
    kind: 'warn',
    state: 'disk low',
    page: '/',
    tell: (of) => [tellDiskLow(of)],
    members: () => ({ freeBytes: wholeNumber(), freeBytesMin: wholeNumber() }),
  },
  disk_full: {
    kind: 'bad',
    state: 'disk full',
    page: '/',
    tell: (of) => [tellDiskFull(of)],
    members: () => ({ freeBytes: wholeNumber(), freeBytesMin: wholeNumber() }),
  },
  disk_usable: {
    kind: 'ok',
    state: 'pushes taken',
    page: '/',
    tell: (of) => [
      'The store’s disk has room for pushes again. From ',
      time(of('since')),
      ' until ',
      time(of('until')),
      ` ${counted(Number(of('refused')), 'request was', 'requests were')} answered with 503.`,
      ...downIn(of),
      ` Does the carrier send these pushes again? If not, ask it to. To learn now what they reported about known parcels: parcel-relay refresh --all`,
    ],
    members: () => ({
      freeBytes: wholeNumber(),
      since: instant().describe('When the relay began to refuse pushes.'),
      until: instant().describe('When it took them again.'),
      refused: wholeNumber().describe('How many pushes it answered with 503 in between, over restarts.'),
      down: z
        .array(z.strictObject({ lastSeenAt: instant(), startedAt: instant() }))
        .describe('When it did not run in between: what was pushed then got no answer. After a kill it has run up to ten seconds longer.'),
    }),
  },
  disk_recovered: {
    kind: 'ok',
    state: 'disk recovered',
    page: '/',
    tell: () => ['The store’s disk has room again'],
    members: () => ({ freeBytes: wholeNumber(), since: since() }),
  },
  clock_doubted: {
    kind: 'warn',
    state: 'clock doubted',
    page: '/',
    tell: () => ['The clock of the relay may be wrong. Retention removes nothing until that is settled'],
    members: () => ({
      because: z.enum(['jumped', 'carrier', 'machine']),
      aheadMs: z.number().int().describe('How far the clock seems to be ahead; negative: behind.'),
    }),
  },
  clock_trusted: {
    kind: 'ok',
    state: 'clock trusted',
    page: '/',
    tell: () => ['The clock of the relay is trusted again'],
    members: () => ({ since: since() }),
  },
  reloaded: {
    kind: 'ok',
    state: 'config reloaded',
    page: '/settings',
    tell: (of) => [`The config was reloaded: ${of('changed') === '' ? 'nothing changed' : `${of('changed')} changed`}`],
    members: () => ({ replica: z.string(), changed: texts(), needsRestart: texts(), problems: texts() }),
  },
  reload_failed: {
    kind: 'warn',
    state: 'config not reloaded',
    page: '/settings',
    tell: (of) => [`The config could not be reloaded: ${of('problems')}`],
    members: () => ({ replica: z.string(), problems: texts() }),
  },
  certificate_expiring: {
    kind: 'warn',
    state: 'certificate expiring',
    page: '/check',
    tell: (of) => [`The certificate of ${of('listener')} expires at `, time(of('expiresAt'))],
    members: () => ({ listener: z.string(), expiresAt: instant(), replica: z.string() }),
  },
  test: {
    kind: 'ok',
    state: 'test',
    page: '/settings',
    tell: () => ['This is a test: operator events of the parcel status relay arrive here'],
    members: () => ({}),
  },
}

export type OperatorEventTable = ReturnType<typeof createOperatorEvents>

/** Joins the events of the core and the console with those that wings offer. */
export function createOperatorEvents(offered: readonly EventDescriptions[]) {
  const described = new Map<string, EventDescription>([OWN_EVENTS, ...offered].flatMap((events) => Object.entries(events)))
  const anyEvent = (more: Readonly<Record<string, z.ZodType>>): z.ZodType => {
    const each = Array.from(described, ([event, { members }]) =>
      z.strictObject({ ...more, event: z.literal(event), at: instant(), ...members() }),
    )
    return z.union(each).describe('Ignore events that you do not know: later versions add some.')
  }
  return {
    /** The names of the events that are stored. */
    names: [...described.keys()].filter((event) => event !== 'test'),
    /** An event as it is posted, and as it is listed with its id. */
    posted: named('OperatorEvent', () => anyEvent({})),
    listed: named('ListedOperatorEvent', () => anyEvent({ id: numberedId() })),
    /** Describes a stored event. The event may be from any version of the relay, so that its name or members may be unknown. */
    word(event: string, detail: Readonly<Record<string, unknown>>): OperatorWords {
      const unknown = event.replaceAll('_', ' ')
      const { kind, state, page, tell } = described.get(event) ?? { kind: 'none', state: unknown, page: '/events', tell: () => [unknown] }
      const of: Reader = (path) => {
        const [member = '', ...inner] = path.split('.')
        return textOf(inner.reduce(memberOf, detail[member]))
      }
      return { kind, state, sentence: tell(of), page: typeof page === 'string' ? page : page(of) }
    },
  }
}

function memberOf(value: unknown, inner: string): unknown {
  return typeof value === 'object' && value !== null ? new Map<string, unknown>(Object.entries(value)).get(inner) : undefined
}

/** Writes an object as its name, and a list as its items. */
function textOf(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  if (typeof value !== 'object' || value === null) return ''
  const named = memberOf(value, 'name')
  return named === undefined ? `${textOf(memberOf(value, 'kind'))} ${textOf(memberOf(value, 'id'))}`.trim() : textOf(named)
}
