import type { OperatorMessage } from '../../core/domain/delivery/operator-event.ts'
import { isObject, member, readJson } from '../../core/domain/json-body.ts'
import { plainText } from '../problems/words.ts'
import type { OperatorEventTable, OperatorWords } from './operator-events.ts'

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

/** Makes what turns an operator event, as `encodeOperatorEvent` writes it, into a message. Null: the bytes are not an operator event. */
export function createFormatOperatorEvent({ word }: Pick<OperatorEventTable, 'word'>) {
  return (event: Uint8Array, { format, portalUrl }: MessageOptions): OperatorMessage | null => {
    const reading = readJson(event)
    if (!reading.ok || !isObject(reading.value)) return null
    const name = member(reading.value, 'event')
    if (typeof name !== 'string') return null
    const { kind, state, sentence, page } = word(name, reading.value)
    const told: Told = {
      title: `${RELAY}: ${state}`,
      text: `${plainText(sentence).slice(0, TEXT_MAX)}.`,
      link: portalUrl === null ? null : `${portalUrl.replace(/\/+$/, '')}${page}`,
      kind,
    }
    return FORMATS[format](told)
  }
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
