import { isDiskFull } from '../../core/domain/admin/disk-room.ts'
import { bytesText, counted, spanText } from '../../core/domain/amounts.ts'
import { typedName } from '../../core/domain/delivery/endpoint-state.ts'
import { type OperatorEvent, type OperatorMessage, WAITED_COUNTED_MAX } from '../../core/domain/delivery/operator-event.ts'
import { reasonText } from '../../core/domain/ingest/fault-in-body.ts'
import { isObject, member, readJson } from '../../core/domain/json-body.ts'
import { isLikelyKey, plainText, type Word } from '../problems/words.ts'

export interface OperatorWords {
  readonly kind: 'bad' | 'warn' | 'off' | 'ok' | 'none'
  /** What is in which state, in two words or three. */
  readonly state: string
  /** A sentence without its full stop. */
  readonly sentence: readonly Word[]
  /** The page of the portal to look at. */
  readonly page: string
}

/** How to describe an event. `of` reads a member of the event as text. The text is empty if another version of the relay recorded no such member. */
interface Wording extends Pick<OperatorWords, 'kind' | 'state'> {
  readonly page: string | ((of: Reader) => string)
  readonly tell: (of: Reader) => readonly Word[]
}

type Reader = (name: string) => string

const name = (text: string): Word => ({ kind: 'name', text })
const time = (text: string): Word => ({ kind: 'time', text })
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

const WORDINGS: Readonly<Record<OperatorEvent['event'], Wording>> = {
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
  },
  endpoint_recovered: {
    kind: 'ok',
    state: 'webhook recovered',
    page: ofEndpoint,
    tell: (of) => [name(of('endpoint')), ` accepts events again${recoveryIn(of)}`],
  },
  endpoint_disabled: {
    kind: 'off',
    state: 'webhook disabled',
    page: ofEndpoint,
    tell: (of) => [name(of('endpoint')), ` ${DISABLED_BECAUSE.get(of('because')) ?? `was disabled: ${of('because')}`}`],
  },
  endpoint_removed: {
    kind: 'off',
    state: 'webhook removed',
    page: '/webhooks',
    tell: (of) => [name(of('endpoint')), ' was removed: no config names it any more'],
  },
  credentials_refused: { kind: 'bad', state: 'password refused', page: '/carrier', tell: () => ['The carrier refuses our password'] },
  credentials_accepted: {
    kind: 'ok',
    state: 'password accepted',
    page: '/carrier',
    tell: () => ['The carrier accepts our password again'],
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
  },
  pushes_silent: {
    kind: 'bad',
    state: 'pushes silent',
    page: '/carrier',
    tell: () => ['No pushes arrive although the carrier scans: polls go back to their full rate'],
  },
  pushes_lossy: { kind: 'warn', state: 'pushes lossy', page: '/carrier', tell: () => ['Pushes arrive, and too many are lost'] },
  pushes_trusted: { kind: 'ok', state: 'pushes trusted', page: '/carrier', tell: () => ['Pushes arrive again, and few are lost'] },
  pushes_quarantined: {
    kind: 'warn',
    state: 'pushes quarantined',
    page: '/inbox',
    tell: (of) => [
      `${counted(Number(of('count')), 'push was', 'pushes were')} not understood since `,
      time(of('since')),
      `: ${reasonText(of('reason'))}`,
    ],
  },
  pushes_not_understood: {
    kind: 'bad',
    state: 'pushes not understood',
    page: '/inbox',
    tell: (of) => ['No push has been understood since ', time(of('since')), `: all go into quarantine: ${reasonText(of('reason'))}`],
  },
  pushes_understood: {
    kind: 'ok',
    state: 'pushes understood',
    page: '/inbox',
    tell: () => ['Pushes are understood again. The ones in quarantine still wait for you'],
  },
  disk_low: { kind: 'warn', state: 'disk low', page: '/', tell: (of) => [tellDiskLow(of)] },
  disk_full: { kind: 'bad', state: 'disk full', page: '/', tell: (of) => [tellDiskFull(of)] },
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
  },
  disk_recovered: { kind: 'ok', state: 'disk recovered', page: '/', tell: () => ['The store’s disk has room again'] },
  clock_doubted: {
    kind: 'warn',
    state: 'clock doubted',
    page: '/',
    tell: () => ['The clock of the relay may be wrong. Retention removes nothing until that is settled'],
  },
  clock_trusted: { kind: 'ok', state: 'clock trusted', page: '/', tell: () => ['The clock of the relay is trusted again'] },
  reloaded: {
    kind: 'ok',
    state: 'config reloaded',
    page: '/settings',
    tell: (of) => [`The config was reloaded: ${of('changed') === '' ? 'nothing changed' : `${of('changed')} changed`}`],
  },
  reload_failed: {
    kind: 'warn',
    state: 'config not reloaded',
    page: '/settings',
    tell: (of) => [`The config could not be reloaded: ${of('problems')}`],
  },
  certificate_expiring: {
    kind: 'warn',
    state: 'certificate expiring',
    page: '/check',
    tell: (of) => [`The certificate of ${of('listener')} expires at `, time(of('expiresAt'))],
  },
  store_restored: {
    kind: 'warn',
    state: 'store restored',
    page: '/',
    tell: (of) => [
      `The store was restored from the backup ${of('backup')} of `,
      time(of('madeAt')),
      `: sequences go on after ${of('nextSequence')}`,
    ],
  },
  backup_failed: {
    kind: 'warn',
    state: 'backup failed',
    page: '/backups',
    tell: (of) => [`The backup ${of('backup')} could not be made: ${of('reason')}`],
  },
  backup_recovered: { kind: 'ok', state: 'backups recovered', page: '/backups', tell: (of) => [`Backups are made again: ${of('backup')}`] },
  retention_held: {
    kind: 'warn',
    state: 'data held back',
    page: '/retention',
    tell: (of) => [
      'Data that is past its time has been held back since ',
      time(of('since')),
      ': it is undelivered, in quarantine or still needed',
    ],
  },
  retention_gave_up: {
    kind: 'bad',
    state: 'data given up',
    page: '/retention',
    tell: () => [
      'Retention has removed data that was still undelivered, in quarantine or needed, because it was older than retention.held',
    ],
  },
  watchdogs_held: {
    kind: 'warn',
    state: 'watchdogs held back',
    page: '/watchdogs',
    tell: (of) => [
      `No push comes and the carrier answers nothing since `,
      time(of('since')),
      `, so nothing is said of ${counted(Number(of('held')), 'parcel that may be', 'parcels that may be')} stalled`,
    ],
  },
  watchdogs_resumed: { kind: 'ok', state: 'watchdogs resumed', page: '/watchdogs', tell: () => ['Parcels are watched over again'] },
  job_ended: { kind: 'ok', state: 'job ended', page: '/jobs', tell: (of) => [`The job ${of('job')} ended: ${of('state')}`] },
  test: {
    kind: 'ok',
    state: 'test',
    page: '/settings',
    tell: () => ['This is a test: operator events of the parcel status relay arrive here'],
  },
}

const BY_EVENT: ReadonlyMap<string, Wording> = new Map(Object.entries(WORDINGS))

/** Describes a stored event. The event may be from any version of the relay, so that its name or members may be unknown. */
export function wordOperatorEvent(event: string, detail: Readonly<Record<string, unknown>>): OperatorWords {
  const unknown = event.replaceAll('_', ' ')
  const { kind, state, page, tell } = BY_EVENT.get(event) ?? { kind: 'none', state: unknown, page: '/events', tell: () => [unknown] }
  const of: Reader = (path) => {
    const [member = '', ...inner] = path.split('.')
    return textOf(inner.reduce(memberOf, detail[member]))
  }
  return { kind, state, sentence: tell(of), page: typeof page === 'string' ? page : page(of) }
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

/** How operator events are posted (`operator.format`): as signed JSON, or as a message to a chat or notification service. */
export type OperatorFormat = 'relay' | 'slack' | 'teams' | 'ntfy'

interface MessageOptions {
  readonly format: Exclude<OperatorFormat, 'relay'>
  /** The address of the portal, to which the message links; null: the message has no link. */
  readonly portalUrl: string | null
}

interface Told {
  readonly title: string
  readonly text: string
  readonly link: string | null
  readonly kind: OperatorWords['kind']
}

const RELAY = 'Parcel status relay'
const TEXT_MAX = 2000

/** Turns an operator event, as `encodeOperatorEvent` writes it, into a message. Null: the bytes are not an operator event. */
export function formatOperatorEvent(event: Uint8Array, { format, portalUrl }: MessageOptions): OperatorMessage | null {
  const reading = readJson(event)
  if (!reading.ok || !isObject(reading.value)) return null
  const name = member(reading.value, 'event')
  if (typeof name !== 'string') return null
  const { kind, state, sentence, page } = wordOperatorEvent(name, reading.value)
  const told: Told = {
    title: `${RELAY}: ${state}`,
    text: `${plainText(sentence).slice(0, TEXT_MAX)}.`,
    link: portalUrl === null ? null : `${portalUrl.replace(/\/+$/, '')}${page}`,
    kind,
  }
  return FORMATS[format](told)
}

const FORMATS: Readonly<Record<MessageOptions['format'], (told: Told) => OperatorMessage>> = {
  /** For Slack's incoming webhooks: `text` is in Slack's markup, in which `&`, `<` and `>` must be escaped. */
  slack({ title, text, link }) {
    const escaped = (written: string) => written.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    const lines = [`*${escaped(title)}*`, escaped(text), ...(link === null ? [] : [`<${escaped(link)}|Open the portal>`])]
    return json({ text: lines.join('\n') })
  },
  /** For workflow webhooks of Microsoft Teams: a message with an adaptive card, whose texts are Markdown. */
  teams({ title, text, link, kind }) {
    const color = kind === 'bad' ? 'attention' : kind === 'warn' ? 'warning' : kind === 'ok' ? 'good' : 'default'
    const block = (written: string, style: object) => ({ type: 'TextBlock', text: withoutMarkdown(written), wrap: true, ...style })
    return json({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          content: {
            $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
            type: 'AdaptiveCard',
            version: '1.4',
            body: [block(title, { weight: 'bolder', color }), block(text, {})],
            ...(link === null ? {} : { actions: [{ type: 'Action.OpenUrl', title: 'Open the portal', url: link }] }),
          },
        },
      ],
    })
  },
  /** For ntfy: the text is the body. Everything else goes into headers, which may contain only ASCII. */
  ntfy({ title, text, link, kind }) {
    const isTrouble = kind === 'bad' || kind === 'warn'
    return {
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        title,
        priority: kind === 'bad' ? 'high' : 'default',
        tags: isTrouble ? 'warning' : kind === 'ok' ? 'white_check_mark' : 'information_source',
        ...(link === null ? {} : { click: link }),
      },
      body: Buffer.from(text),
    }
  },
}

function json(message: object): OperatorMessage {
  return { headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(message)) }
}

/** Escapes Markdown's special characters, because the name of an endpoint may contain them. */
function withoutMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]()#]/g, '\\$&')
}
