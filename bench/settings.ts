import { parseArgs } from 'node:util'
import { EVENTS_PER_PARCEL } from './load/event.ts'

export interface Settings {
  readonly suites: readonly string[]
  readonly quick: boolean
  readonly rounds: number
  /** Duration of one measurement. */
  readonly durationMs: number
  /** Duration of the closed-loop warm-up, without which the measurement would include compilation. */
  readonly warmUpMs: number
  /** How often the suite `starts` starts the relay. */
  readonly starts: number
  /** Another compiled `main.js` that `starts` measures in alternation; null: none. */
  readonly beside: string | null
  /** A file in which the suite `years` keeps its loaded store for the next run; null: it is kept per version of the code. */
  readonly keep: string | null
  /** The sizes for which the figures are specified. A quick run uses smaller ones. */
  readonly scale: {
    readonly storedParcels: number
    readonly hotParcels: number
    readonly uniformParcels: number
    /** Parcels whose events each wait for four endpoints. */
    readonly queuedParcels: number
    readonly backlogParcels: number
  }
}

export const USAGE = `npm run bench -- [suite ...] [options]

  --rounds N    measurements of each (5)
  --seconds N   length of one (4)
  --starts N    starts of the suite \`starts\` (20)
  --beside FILE another compiled main.js, which \`starts\` measures in turns
  --events N    events in a full store (1000006)
  --keep FILE   where \`years\` keeps its loaded store, and takes it from if it is there
  --quick       a fast look at small stores; its figures are not the ones that are wanted
`

/** A million stored events, and a backlog of a million deliveries of a quarter million events. */
const FULL = { storedParcels: 142_858, hotParcels: 50_000, uniformParcels: 200_000, queuedParcels: 8_000, backlogParcels: 35_715 }
const QUICK = { storedParcels: 6_000, hotParcels: 2_000, uniformParcels: 6_000, queuedParcels: 2_000, backlogParcels: 4_000 }

/** Throws with a sentence for the user. */
export function parseSettings(args: readonly string[]): Settings {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      starts: { type: 'string' },
      beside: { type: 'string' },
      events: { type: 'string' },
      keep: { type: 'string' },
      quick: { type: 'boolean', default: false },
    },
  })
  const { quick } = values
  const scale = quick ? QUICK : FULL
  const seconds = positive('--seconds', values.seconds ?? (quick ? '1' : '4'))
  return {
    suites: positionals,
    quick,
    rounds: positive('--rounds', values.rounds ?? (quick ? '2' : '5')),
    durationMs: seconds * 1000,
    warmUpMs: quick ? 1000 : 4000,
    starts: positive('--starts', values.starts ?? (quick ? '3' : '20')),
    beside: values.beside ?? null,
    keep: values.keep ?? null,
    scale: { ...scale, ...(values.events === undefined ? {} : { storedParcels: parcelsOf(positive('--events', values.events)) }) },
  }
}

function parcelsOf(events: number): number {
  return Math.ceil(events / EVENTS_PER_PARCEL)
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new RangeError(`${name} must be a number above 0`)
  return value
}
