import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { openDeliveryWorld, type WorldAttempt } from '../../../support/delivery/delivery-world.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { runsOn } from '../../../support/runner/long-form.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { engines } from '../../../support/store/engines.ts'

const PARCELS = 25
const SEEDS = Array.from({ length: 8 }, (_, nth) => 20_260_301 + nth)

/**
 * Simulates one or two hours in which an endpoint is sometimes down and never accepts certain events, and in which the relay is killed. Then
 * the endpoint works, and all waiting events must be sent. Returns the faults that it found, as text.
 */
async function live(
  engine: Engine,
  seed: number,
): Promise<{ readonly wrong: readonly string[]; readonly attempts: number; readonly probes: number }> {
  const random = seeded(seed)
  const { below } = drawWith(random)
  const wrong: string[] = []
  const poisonous = new Set<number>()
  /** `queued`: the sequences of each parcel in order. `told`: the sequences that the endpoint has accepted. */
  const queued = new Map<number, number[]>()
  const told = new Set<number>()
  let isDown = false
  let sequence = 0
  const poison = seed % 2 === 0 ? 422 : 500
  let probes = 0
  /** When the endpoint recovered, and the sequences that waited then; null: there is no recovery to check. */
  let woken: { readonly atMs: number; readonly waiting: Set<number> } | null = null
  let wasFailing = false

  const world = await openDeliveryWorld(engine, NOON, {
    statusOf: ({ sequence: of }) => (isDown ? 500 : poisonous.has(of) ? poison : 200),
    latencyMs: () => 5 + below(60),
    onEnd: ({ delivery, status }) => {
      if (status === 200) told.add(delivery.sequence)
    },
    onAttempt: (attempt, report) => {
      const isFailing = report.endpoints.some(({ health }) => health.probing !== null)
      if (isFailing) probes += 1
      if (isFailing && (world.underWay().length > 0 || report.claimed.length > 1))
        wrong.push(`${seed}: two attempts are under way to a failing endpoint`)
      orderOf(attempt)
      wakingOf(attempt, isFailing)
    },
  })

  function orderOf({ delivery }: WorldAttempt): void {
    const own = [...queued.values()].find((sequences) => sequences.includes(delivery.sequence)) ?? []
    if (world.underWay().some((other) => own.includes(other.delivery.sequence)))
      wrong.push(`${seed}: two attempts of a parcel are under way`)
    const earlier = own.filter((other) => other < delivery.sequence && !told.has(other) && !poisonous.has(other))
    if (earlier.length > 0) wrong.push(`${seed}: ${delivery.sequence} overtakes ${earlier.join()}`)
  }

  function firsts(): number[] {
    const underWay = new Set(world.underWay().map(({ delivery }) => delivery.sequence))
    return [...queued.values()].flatMap((sequences) => {
      const first = sequences.find((one) => !told.has(one))
      return first === undefined || underWay.has(first) || poisonous.has(first) ? [] : [first]
    })
  }

  /** When the endpoint has recovered, remembers which sequences wait, so that `live` can check that they are sent soon. */
  function wakingOf({ delivery, beganMs }: WorldAttempt, isFailing: boolean): void {
    woken?.waiting.delete(delivery.sequence)
    if (isFailing) woken = null
    else if (wasFailing) woken = { atMs: beganMs, waiting: new Set(firsts().filter((one) => one !== delivery.sequence)) }
    wasFailing = isFailing
  }

  async function live(untilMs: number): Promise<void> {
    while (world.now() < untilMs) {
      await world.run(Math.min(untilMs, world.now() + 500))
      if (woken !== null && woken.waiting.size > 0 && world.now() > woken.atMs + 3000) {
        wrong.push(`${seed}: ${[...woken.waiting].join()} still wait ${world.now() - woken.atMs} ms after the endpoint recovered`)
        woken = null
      }
    }
  }

  for (let step = 0; step < 60; step++) {
    for (let nth = below(8); nth > 0; nth--) {
      sequence += 1
      const parcel = below(PARCELS)
      if (random() < 0.04) poisonous.add(sequence)
      queued.set(parcel, [...(queued.get(parcel) ?? []), sequence])
      await world.push({ trackingIds: [String(100_000 + parcel)], eventTime: new Date(NOON + sequence * 1000).toISOString() })
    }
    if (random() < 0.15) isDown = !isDown
    if (random() < 0.06) {
      await world.kill()
      wasFailing = (await world.endpoint()).health.probing !== null
      woken = null
    }
    await live(world.now() + ([200, 1000, 5000, MINUTE_MS][below(4)] ?? 0))
  }
  isDown = false
  await live(world.now() + 20 * MINUTE_MS)
  await world.run(world.now() + 3 * HOUR_MS)

  const listed = (await world.reads.listDeliveries({ endpointId: world.id, parcelId: null, state: null, before: null, limit: 1000 }))
    .deliveries
  if (listed.length !== sequence) wrong.push(`${seed}: ${sequence} events were pushed, but ${listed.length} queued`)
  for (const delivery of listed) {
    const isTaken = world.attempts.some(({ delivery: { sequence: of }, status }) => of === delivery.sequence && status === 200)
    const isPoisonous = poisonous.has(delivery.sequence)
    const isBehind = [...queued.values()].some(
      (own) => own.includes(delivery.sequence) && own.some((one) => poisonous.has(one) && one < delivery.sequence),
    )
    if (delivery.state === 'delivered' ? !isTaken : !isPoisonous && !isBehind)
      wrong.push(`${seed}: ${delivery.sequence} ended as ${delivery.state}`)
  }
  return { wrong, attempts: world.attempts.length, probes }
}

describe.each(engines)('failing endpoints on $name', (engine) => {
  test('an endpoint finally gets all events in order, whatever it refuses meanwhile', async () => {
    let probes = 0
    const seeds = SEEDS.slice(0, runsOn(engine, SEEDS.length, 2))
    for (const seed of seeds) {
      const lived = await live(engine, seed)
      expect(lived.wrong).toEqual([])
      probes += lived.probes
    }
    // The endpoint was failing some of the time.
    expect(probes).toBeGreaterThan(2 * seeds.length)
  })
})
