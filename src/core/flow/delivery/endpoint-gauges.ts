import { conditionOf, type EndpointCondition, type EndpointState, NO_BACKLOG } from '../../domain/delivery/endpoint-state.ts'
import type { Part, Reads } from '../relay.ts'

/** The gauges of one endpoint, or the sums of the gauges of several. */
export interface EndpointGauge {
  readonly name: string
  readonly waiting: number
  /** 0: nothing waits. */
  readonly oldestWaitingSeconds: number
  readonly dead: number
  /** How many endpoints are in each condition. */
  readonly conditions: Readonly<Record<EndpointCondition, number>>
}

const NONE: EndpointGauge['conditions'] = { failing: 0, disabled: 0, untried: 0, delivering: 0 }

/** The first `max` endpoints have separate gauges; all others are added up under the name `others`. */
export interface GaugeNames {
  readonly max: number
  readonly others: string
}

/** Reads the gauges of the first endpoints, and the sums of all others, so that every waiting delivery is counted. */
export async function readEndpointGauges(
  { reads, clock }: Part<'clock', 'now'> & Reads<'listEndpoints' | 'countBacklogs'>,
  { max, others }: GaugeNames,
): Promise<readonly EndpointGauge[]> {
  const gauges = new Map<string, EndpointGauge>()
  const states = await reads.listEndpoints()
  const backlogs = await reads.countBacklogs(states.map(({ endpoint }) => endpoint.id))
  for (const [index, state] of states.entries()) {
    const name = index < max ? state.endpoint.name : others
    const known = gauges.get(name)
    const one = gaugeOf(state, name)
    gauges.set(name, known === undefined ? one : sumOf(known, one))
  }
  return [...gauges.values()]

  function gaugeOf(state: EndpointState, name: string): EndpointGauge {
    const { waiting, oldestAtMs, dead } = backlogs.get(state.endpoint.id) ?? NO_BACKLOG
    return {
      name,
      waiting,
      oldestWaitingSeconds: oldestAtMs === null ? 0 : Math.max(0, (clock.now() - oldestAtMs) / 1000),
      dead,
      conditions: { ...NONE, [conditionOf(state)]: 1 },
    }
  }
}

function sumOf(one: EndpointGauge, other: EndpointGauge): EndpointGauge {
  return {
    name: one.name,
    waiting: one.waiting + other.waiting,
    oldestWaitingSeconds: Math.max(one.oldestWaitingSeconds, other.oldestWaitingSeconds),
    dead: one.dead + other.dead,
    conditions: {
      failing: one.conditions.failing + other.conditions.failing,
      disabled: one.conditions.disabled + other.conditions.disabled,
      untried: one.conditions.untried + other.conditions.untried,
      delivering: one.conditions.delivering + other.conditions.delivering,
    },
  }
}
