import type { Replica } from '../../domain/admin/replica.ts'
import { isInTrouble, type Situation } from '../../domain/admin/verdict.ts'
import type { EndpointBacklog } from '../../domain/delivery/endpoint-state.ts'
import type { ToldEvent } from '../../domain/delivery/operator-event.ts'
import type { Carrier, Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'
import type { Readiness } from './readiness.ts'

export interface OverviewPorts {
  readonly reads: Pick<ReadSide, 'counts' | 'listEndpoints' | 'countBacklog' | 'listOperatorEvents'>
  readonly write: Pick<WriteSide, 'pushChannel'>
  readonly carrier: Pick<Carrier, 'state'>
  readonly readiness: () => Promise<Readiness>
  readonly listReplicas: () => Promise<readonly Replica[]>
  readonly clock: Pick<Clock, 'now'>
}

/** What operators see of the relay at a glance. */
export interface Overview {
  read(): Promise<Situation & { readonly happened: readonly ToldEvent[] }>
}

/** Endpoints in trouble whose backlogs are counted, and events that are shown. */
const SHOWN = { backlogs: 20, events: 10 }

export function createOverview({ reads, write, carrier, readiness, listReplicas, clock }: OverviewPorts): Overview {
  return {
    async read() {
      const all = await reads.listEndpoints()
      const endpoints = all.filter(({ origin }) => origin !== 'operator')
      const backlogs = new Map<string, EndpointBacklog>()
      for (const { endpoint } of endpoints.filter(isInTrouble).slice(0, SHOWN.backlogs)) {
        backlogs.set(endpoint.id, await reads.countBacklog(endpoint.id))
      }
      return {
        notReady: (await readiness()).reasons,
        counts: await reads.counts(clock.now()),
        carrier: carrier.state(),
        pushes: await write.pushChannel(),
        endpoints,
        backlogs,
        replicas: await listReplicas(),
        happened: await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: SHOWN.events }),
      }
    },
  }
}
