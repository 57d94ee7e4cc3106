import type { KeptBody, Loaded, Needs } from '../../domain/history/snapshot.ts'
import type { Session } from '../engine.ts'
import { listPushes } from '../ingest/inbox.ts'
import { loadAnswersOf } from './answers.ts'
import { loadOrders } from './sightings.ts'

/** Loads what a batch needs and what both engines load in the same way: the answers, orders and bodies of parcels. */
export async function loadParcelFacts(session: Session, needs: Needs): Promise<Pick<Loaded, 'answers' | 'orders' | 'bodies'>> {
  const [answers, orders, bodies] = await Promise.all([
    loadAnswersOf(session, needs.answers),
    loadOrders(session, needs.orders),
    Promise.all(needs.bodies.map(async (parcelId) => [parcelId, await loadBodies(session, parcelId)] as const)),
  ])
  return { answers, orders, bodies: new Map(bodies) }
}

const PUSHES_PER_READ = 100

async function loadBodies(session: Session, parcelId: number): Promise<readonly KeptBody[]> {
  const bodies: KeptBody[] = []
  let after: Uint8Array | null = new Uint8Array()
  while (after !== null) {
    const kept: Awaited<ReturnType<typeof listPushes>> = await listPushes(session, { parcelId, after, limit: PUSHES_PER_READ })
    for (const { inboxId, body } of kept) bodies.push({ inboxId, body })
    after = kept.length < PUSHES_PER_READ ? null : (kept.at(-1)?.digest ?? null)
  }
  return bodies
}
