import { expect, vi } from 'vitest'
import { pushBody } from '../history/builders.ts'
import type { Arrival, MoodyReceiver } from '../network/moody-receiver.ts'
import { operatorOf } from '../relay/manage.ts'
import { push } from '../relay/relay.ts'
import type { EndpointLedger, ToldDelivery } from './relaying-ledger.ts'

interface Listed extends ToldDelivery {
  readonly nextAttemptAt: string | null
  readonly endpoint: { readonly id: string; readonly name: string }
}

/** Waits until all deliveries have ended. Returns, for each endpoint, its deliveries as the relay reports them, and what it received. */
export async function settledLedger(
  relay: { readonly publicUrl: string; readonly internalUrl: string },
  receivers: ReadonlyMap<string, MoodyReceiver>,
): Promise<readonly EndpointLedger[]> {
  const operate = await operatorOf(relay)
  const listed = async (query: string): Promise<readonly Listed[]> => {
    const all: Listed[] = []
    for (let cursor = ''; cursor !== 'null'; ) {
      const { body } = await operate('GET', `/relay/deliveries?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`)
      if (Array.isArray(body.deliveries)) all.push(...body.deliveries)
      cursor = String(body.next)
    }
    return all
  }
  const waiting = async () => {
    const left: Listed[] = []
    // Ask for one state after the other, in the order in which a delivery has them. Parallel requests could all miss a delivery.
    for (const state of ['queued', 'retrying', 'held']) left.push(...(await listed(`state=${state}`)))
    return left
  }
  // An endpoint that accepts nothing counts as down, so deliveries that it refused do not die. More pushes give it something to accept.
  let more = 0
  const another = () => pushBody({ trackingIds: ['770000'], location: 'Elsewhere', eventTime: new Date(Date.now() + more++).toISOString() })
  const isOver = async () => {
    const left = await waiting()
    if (left.length > 0) await push(relay.publicUrl, another())
    // An endpoint that refuses everything is probed only every 5 minutes, so an operator retries it.
    for (const id of new Set(left.map(({ endpoint }) => endpoint.id))) await operate('POST', `/relay/endpoints/${id}/retry`)
    expect(left.map(({ endpoint, state, nextAttemptAt }) => `${endpoint.name} ${state} ${nextAttemptAt}`)).toEqual([])
  }
  await vi.waitFor(isOver, { timeout: 300_000, interval: 500 })
  const deliveries = await listed('')
  return [...receivers].map(([name, { arrivals }]) => ({
    name,
    arrivals,
    deliveries: deliveries.filter(({ endpoint }) => endpoint.name === name),
  }))
}

/** Counts the arrivals of events that the endpoint had already accepted. */
export function repeats({ arrivals }: { readonly arrivals: readonly Arrival[] }): number {
  const taken = new Set<number>()
  return arrivals.filter(({ sequence, accepted }) => {
    const again = taken.has(sequence)
    if (accepted) taken.add(sequence)
    return again
  }).length
}
