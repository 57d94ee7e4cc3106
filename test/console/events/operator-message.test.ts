import { describe, expect, test } from 'vitest'
import { createFormatOperatorEvent, type OperatorFormat } from '../../../src/console/events/operator-message.ts'
import { encodeOperatorEvent, type OperatorEvent } from '../../../src/core/domain/delivery/operator-event.ts'
import { OPERATOR_EVENTS } from '../../support/relay/routes.ts'

const formatOperatorEvent = createFormatOperatorEvent(OPERATOR_EVENTS)

const NOW = Date.parse('2026-03-01T10:00:00.250Z')
const failing: OperatorEvent = {
  event: 'endpoint_failing',
  endpoint: { id: '7', name: 'shop <&> *north*' },
  since: '2026-03-01T09:45:00.000Z',
  failure: { status: 401, reason: null, answer: 'signature does not match' },
}

function formatted(
  event: OperatorEvent,
  format: Exclude<OperatorFormat, 'relay'>,
  portalUrl: string | null = 'https://relay.internal/ops/',
) {
  const message = formatOperatorEvent(encodeOperatorEvent(event, NOW), { format, portalUrl })
  if (message === null) throw new Error('it is no event')
  return { headers: message.headers, text: Buffer.from(message.body).toString() }
}

describe('an operator event as a message', () => {
  test('to Slack is text with special characters escaped, and a link to the page of the portal', () => {
    const { headers, text } = formatted(failing, 'slack')
    expect(headers).toEqual({ 'content-type': 'application/json' })
    expect(JSON.parse(text)).toEqual({
      text: '*Parcel status relay: webhook failing*\nshop &lt;&amp;&gt; *north* has failed every attempt since 2026-03-01T09:45:00.000Z. It answers 401 ("signature does not match"), so it may have another key. Look: parcel-relay endpoints show 7.\n<https://relay.internal/ops/webhooks/7|Open the portal>',
    })
  })

  test('to Teams is an adaptive card whose texts have no Markdown, with the link as its action', () => {
    const { text } = formatted(failing, 'teams')
    expect(JSON.parse(text)).toMatchObject({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          content: {
            type: 'AdaptiveCard',
            body: [
              { type: 'TextBlock', text: 'Parcel status relay: webhook failing', color: 'attention' },
              {
                type: 'TextBlock',
                text: expect.stringMatching(
                  /^shop <&> \\\*north\\\* has failed every attempt since 2026-03-01T09:45:00\.000Z\. It answers 401 /,
                ),
              },
            ],
            actions: [{ type: 'Action.OpenUrl', url: 'https://relay.internal/ops/webhooks/7' }],
          },
        },
      ],
    })
  })

  test('to ntfy is plain text, with title, priority, tag and link in headers', () => {
    expect(formatted(failing, 'ntfy')).toEqual({
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        title: 'Parcel status relay: webhook failing',
        priority: 'high',
        tags: 'warning',
        click: 'https://relay.internal/ops/webhooks/7',
      },
      text: 'shop <&> *north* has failed every attempt since 2026-03-01T09:45:00.000Z. It answers 401 ("signature does not match"), so it may have another key. Look: parcel-relay endpoints show 7.',
    })
    expect(formatted({ event: 'credentials_accepted', since: 'x' }, 'ntfy').headers).toMatchObject({
      priority: 'default',
      tags: 'white_check_mark',
    })
  })

  test.each(['slack', 'teams', 'ntfy'] as const)('to %s has no link if the portal’s address is not known', (format) => {
    const { headers, text } = formatted(failing, format, null)
    expect(`${JSON.stringify(headers)}${text.replace('http://adaptivecards.io', '')}`).not.toMatch(/https?:|OpenUrl|click/)
  })

  test('has counts and reasons in words', () => {
    const event: OperatorEvent = { event: 'pushes_quarantined', reason: 'json_syntax', count: 3, since: '2026-03-01T10:00:00.000Z' }
    expect(formatted(event, 'ntfy').text).toBe('3 pushes were not understood since 2026-03-01T10:00:00.000Z: it is not JSON.')
    expect(formatted({ ...event, count: 1 }, 'ntfy').text).toContain('1 push was not understood')
  })
})

test('the messages about the disk say what the relay still does, also if it is full at once', () => {
  const room = { freeBytes: 52 * 1024 ** 2, freeBytesMin: 64 * 1024 ** 2 }
  const textOf = (event: OperatorEvent) => formatted(event, 'ntfy').text
  expect(textOf({ event: 'disk_full', ...room })).toBe(
    'The store’s disk is full: pushes are refused and nothing is polled; apps are still served. 52 MB are free, 64 MB are needed.',
  )
  expect(textOf({ event: 'disk_low', ...room, freeBytes: 100 * 1024 ** 2 })).toBe(
    'The store’s disk is nearly full: 100 MB are free. The relay does all its work until less than 64 MB are free, and then refuses pushes.',
  )
  expect(textOf({ event: 'disk_low', ...room, freeBytes: 0 })).toBe(
    'The store’s disk runs out of room: 0 kB are free. That is too little to take pushes, of which an event of its own tells; this one ends later, once there is room to spare.',
  )
})

test('every operator event has words and a page, even an unknown one or one without members', () => {
  for (const event of OPERATOR_EVENTS.names) {
    const { kind, sentence, page } = OPERATOR_EVENTS.word(event, {})
    expect([event, kind, sentence.length, page]).toEqual([
      event,
      expect.stringMatching(/^(bad|warn|off|ok)$/),
      expect.any(Number),
      expect.stringMatching(/^\//),
    ])
  }
  expect(OPERATOR_EVENTS.word('from_the_future', {})).toMatchObject({
    kind: 'none',
    state: 'from the future',
    sentence: ['from the future'],
  })
})

test('bytes that are not an operator event become no message', () => {
  for (const bytes of ['', '[]', '{"event":1}', '{'])
    expect(formatOperatorEvent(Buffer.from(bytes), { format: 'slack', portalUrl: null })).toBeNull()
})
