import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { loadRoutes } from '../../src/assembly/internal-listener.ts'
import { presentApiDocument } from '../../src/console/document/openapi.ts'
import { type EventDescriptions, type EventsOf, time } from '../../src/console/events/operator-events.ts'
import { createFormatOperatorEvent } from '../../src/console/events/operator-message.ts'
import { charactersOf } from '../../src/console/portal/html.ts'
import { eventTable } from '../../src/console/portal/parts.ts'
import type { ConcernDescriptions } from '../../src/console/problems/concern-kinds.ts'
import { encodeOperatorEvent, type OperatorEvent } from '../../src/core/domain/delivery/operator-event.ts'
import { instant, wholeNumber } from '../../src/core/http/server/answer-schemas.ts'
import { WINGS } from '../../src/wings.ts'
import { openAnswersAt } from '../support/network/answers-at.ts'
import { NOON } from '../support/runner/constants.ts'
import { openStore } from '../support/store/write-side.ts'

/** What a made-up wing offers. */
const WEATHER_EVENTS = {
  snow_began: {
    kind: 'warn',
    state: 'snow',
    page: '/weather',
    tell: (of) => [`${of('depthCm')} cm of snow lie since `, time(of('since'))],
    members: () => ({ depthCm: wholeNumber().describe('How deep it is.'), since: instant() }),
  },
} satisfies EventDescriptions

declare module '../../src/core/domain/delivery/operator-event.ts' {
  interface OperatorEvents extends EventsOf<typeof WEATHER_EVENTS> {}
}

const WEATHER_KINDS = {
  roof_bends: { canWait: false, runbook: ['the-roof-bends', 'the roof bends'], before: 'wal_grows' },
} satisfies ConcernDescriptions

const SNOW: OperatorEvent = { event: 'snow_began', depthCm: 12, since: '2026-03-01T10:00:00.000Z' }
const { event: NAME, ...MEMBERS } = SNOW

/** Adds the line of the made-up wing to the table until the test ends, or until the returned function is called. */
function offerWeather(): () => void {
  const wings: unknown = WINGS
  if (!Array.isArray(wings)) throw new Error('it is no table')
  const line = { events: async () => WEATHER_EVENTS, problemKinds: async () => WEATHER_KINDS }
  wings.push(line)
  const withdraw = () => {
    if (wings.includes(line)) wings.splice(wings.indexOf(line), 1)
  }
  onTestFinished(withdraw)
  return withdraw
}

const union = z.object({ anyOf: z.array(z.unknown()) })
const apiDocument = z.object({
  paths: z.object({ '/relay/operator-events': z.object({ get: z.object({ parameters: z.array(z.unknown()) }) }) }),
  components: z.object({ schemas: z.object({ OperatorEvent: union, ListedOperatorEvent: union }) }),
})

const DESCRIBED = { event: expect.objectContaining({ const: NAME }), depthCm: expect.objectContaining({ description: 'How deep it is.' }) }

const kinds = z.object({ kind: z.object({ enum: z.array(z.string()) }) })
const overview = z.object({ properties: z.object({ problems: z.object({ items: z.object({ properties: kinds }) }) }) })
const verdictDocument = z.object({ components: z.object({ schemas: z.object({ Overview: overview }) }) })

async function documented(): Promise<string> {
  return presentApiDocument({ version: '1', ...(await loadRoutes()) })
}

const listed = (...events: readonly object[]) => ({ events, next: null })

test('an event that a wing offers is listed, found by its name, documented, and told in its words', async () => {
  const store = await openStore(NOON)
  await store.writes.recordOperatorEvent({ event: 'credentials_refused' }, NOON - 1)
  await store.writes.recordOperatorEvent(SNOW, NOON)
  expect(await documented()).not.toContain(NAME)
  offerWeather()
  const answers = await openAnswersAt({ ...store, nowMs: NOON })
  onTestFinished(answers.close)
  const asked = async (query: string) => {
    const { status, body } = await answers.get(`/relay/operator-events?${query}`)
    return [status, JSON.parse(body)]
  }
  const snow = { id: '2', event: NAME, at: new Date(NOON).toISOString(), ...MEMBERS }
  expect(await asked('')).toEqual([200, listed(snow, expect.objectContaining({ event: 'credentials_refused' }))])
  expect(await asked(`event=${NAME}`)).toEqual([200, listed(snow)])
  expect(await asked('event=hail_began')).toMatchObject([400, {}])

  const { components, paths } = apiDocument.parse(JSON.parse(await documented()))
  expect(paths['/relay/operator-events'].get.parameters).toContainEqual(
    expect.objectContaining({ name: 'event', schema: expect.objectContaining({ enum: expect.arrayContaining([NAME]) }) }),
  )
  const required = ['event', 'at', 'depthCm', 'since']
  const { OperatorEvent: posted, ListedOperatorEvent: inList } = components.schemas
  expect(posted.anyOf).toContainEqual(expect.objectContaining({ properties: expect.objectContaining(DESCRIBED), required }))
  expect(inList.anyOf).toContainEqual(
    expect.objectContaining({ properties: expect.objectContaining(DESCRIBED), required: ['id', ...required] }),
  )

  const { events } = await loadRoutes()
  const page = charactersOf(eventTable([{ id: 2, atMs: NOON, event: NAME, detail: MEMBERS }], NOON, events.word))
  expect(page.replaceAll(/<[^>]*>/g, '')).toContain('12 cm of snow lie since 10:00 UTC')
  const message = createFormatOperatorEvent(events)(encodeOperatorEvent(SNOW, NOON), {
    format: 'ntfy',
    portalUrl: 'https://relay.internal',
  })
  expect(message?.headers).toMatchObject({ title: 'Parcel status relay: snow', tags: 'warning', click: 'https://relay.internal/weather' })
  expect(String(message?.body)).toBe('12 cm of snow lie since 2026-03-01T10:00:00.000Z.')
})

test('without the line of its wing a stored event is listed all the same, and told by its name', async () => {
  const withdraw = offerWeather()
  const store = await openStore(NOON)
  await store.writes.recordOperatorEvent(SNOW, NOON)
  withdraw()
  const answers = await openAnswersAt({ ...store, nowMs: NOON })
  onTestFinished(answers.close)
  const { status, body } = await answers.get('/relay/operator-events')
  expect([status, JSON.parse(body)]).toEqual([200, listed({ id: '1', event: NAME, at: new Date(NOON).toISOString(), ...MEMBERS })])
  const { events } = await loadRoutes()
  expect(events.names).not.toContain(NAME)
  expect(events.word(NAME, MEMBERS)).toEqual({ kind: 'none', state: 'snow began', sentence: ['snow began'], page: '/events' })
  const message = createFormatOperatorEvent(events)(encodeOperatorEvent(SNOW, NOON), { format: 'ntfy', portalUrl: null })
  expect(String(message?.body)).toBe('snow began.')
})

test('a kind of problem that a wing offers is documented, and found with its runbook where it belongs', async () => {
  const documentedKinds = async () => {
    const { components } = verdictDocument.parse(JSON.parse(await documented()))
    return components.schemas.Overview.properties.problems.items.properties.kind.enum
  }
  expect(await documentedKinds()).not.toContain('roof_bends')
  offerWeather()
  const found = await documentedKinds()
  expect(found.indexOf('wal_grows') - found.indexOf('roof_bends')).toBe(1)
  const { concerns } = await loadRoutes()
  expect(concerns.known.get('roof_bends')).toMatchObject({ canWait: false, runbook: ['the-roof-bends', 'the roof bends'] })
})
