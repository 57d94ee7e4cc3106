import type { IncomingMessage, ServerResponse } from 'node:http'
import { json, openCarrier } from '../../core/carrier/carrier-double.ts'
import { answerBody } from '../history/builders.ts'
import { DAY_MS } from '../runner/constants.ts'

/** Times are monotonic milliseconds. */
export interface Ask {
  readonly by: string
  readonly parcel: string
  readonly language: string
  readonly atMs: number
  /** When the day of the request began, in epoch milliseconds. */
  readonly dayStartMs: number
  answeredAtMs: number | null
}

const startOfDay = (nowMs: number) => nowMs - (nowMs % DAY_MS)
/** Each replica asks at its own address: `/{replica}/v1/status/{parcel}/all`. */
const QUESTION = /^\/(\w+)\/v1\/status\/(\w+)\/all$/

/** Starts a slow carrier. Each request in the first language finds a new entry, so that the poll also asks in the other language. */
export async function openSlowCarrier(firstLanguage: string, answerAfterMs: () => number) {
  const asks: Ask[] = []
  const entries = new Map<string, number>()
  const fromMs = Date.now() - 60_000
  let isQuiet = false

  const body = (parcel: string, language: string) => {
    const statuses = Array.from({ length: entries.get(parcel) ?? 0 }, (_, at) => ({
      status: 'DeliveryStarted',
      detailedStatus: `Stop${at}`,
      eventTimestamp: new Date(fromMs + at).toISOString(),
      detailedStatusDescription: `${language} ${at}`,
      consumerDescription: `${language} ${at}`,
    }))
    return answerBody({ trackingIds: [parcel.replace(/\D/g, '')], statuses: statuses.reverse() }).toString()
  }
  const status = (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://carrier')
    const [, by = '', parcel = ''] = QUESTION.exec(pathname) ?? []
    const language = searchParams.get('language') ?? ''
    const asked: Ask = { by, parcel, language, atMs: performance.now(), dayStartMs: startOfDay(Date.now()), answeredAtMs: null }
    asks.push(asked)
    if (language === firstLanguage && !isQuiet) entries.set(parcel, (entries.get(parcel) ?? 0) + 1)
    const answer = body(parcel, language)
    setTimeout(() => {
      asked.answeredAtMs = performance.now()
      json(response, 200, answer)
    }, answerAfterMs())
  }
  const { url, asked } = await openCarrier({ status })
  return {
    url,
    asks,
    /** Counts the calls since midnight UTC. The few calls for tokens all count as today's. */
    callsToday: () => asked.token + asks.filter(({ dayStartMs }) => dayStartMs === startOfDay(Date.now())).length,
    /** Returns the config of a replica whose requests the carrier notes under the name `by`. */
    configOf: (by: string) => ({ baseUrl: `${url}/${by}`, authUrl: `${url}/auth/token` }),
    silentMs: () => performance.now() - (asks.at(-1)?.atMs ?? 0),
    underWay: (by: string) => asks.filter((ask) => ask.by === by && ask.answeredAtMs === null),
    /** Stops adding entries to parcels. Returns how many entries were added. */
    quieten(): number {
      isQuiet = true
      return [...entries.values()].reduce((sum, count) => sum + count, 0)
    },
  }
}
