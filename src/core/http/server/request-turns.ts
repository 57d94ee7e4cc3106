import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface RequestTurns {
  readonly handle: RequestListener
  /** Returns the last response of each connection, unless it has ended. */
  lastOwed(): readonly ServerResponse[]
}

interface Waiting {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly weight: number
}

interface Line {
  readonly socket: Socket
  /** The response to the latest request. Null: that response has ended. */
  last: ServerResponse | null
  /** How many requests are being answered, or have an answer that the client has not read yet. */
  answering: number
  /** Requests that wait for their turn, in order. `weight` is the sum of their weights. */
  readonly waiting: Waiting[]
  weight: number
  /** Whether the connection is in the queue for a turn. */
  isInLine: boolean
  /** Whether reading from the connection is paused. */
  isHeld: boolean
  isCut: boolean
}

/** Node's types do not include the HTTP parser. */
interface Parser {
  onIncoming: ((req: IncomingMessage, keepAlive: boolean) => number) | null
}

/** How many requests of a connection are answered at a time. Without a limit, a client that reads no answers could fill the memory. */
const AT_ONCE = 8
/** How many waiting requests begin in one turn of the event loop, before other connections are read. */
const TURNS_AT_ONCE = 32
/** The requests that wait on one connection may weigh at most `waitingMax` divided by this. */
const SHARES = 16
/** A waiting pipelined request has weight 1, and 1 more for every 4 KiB of its body. */
const BODY_BYTES_PER_WEIGHT = 4096
/** Node reads at most this much of a connection at a time, so no more of a waiting body is in memory. */
const READ_BYTES = 64 * 1024
/** The return value that makes Node's parser stop. */
const STOP_PARSING = -1

/**
 * Answers the connections in turn (round robin), so that no connection can delay the others. A request on an idle connection begins at once
 * if no other requests wait. A request that is pipelined behind another waits for a turn of its connection.
 *
 * Node parses all requests of one read at once: up to some 2,500. So `waitingMax` limits the weight of all waiting requests. Beyond the
 * limit, the connection with the most weight is closed. `onFirst` is called with the first request of each connection.
 */
export function shareTurns(answer: RequestListener, waitingMax: number, onFirst: RequestListener = () => undefined): RequestTurns {
  const share = Math.max(AT_ONCE, Math.floor(waitingMax / SHARES))
  const lines = new Map<Socket, Line>()
  let waiting = 0
  /** The weight of requests discarded in the current second. While it exceeds `waitingMax`, each connection gets a smaller share. */
  let thrownAway = 0

  const handle: RequestListener = (req, res) => {
    const line = lines.get(req.socket) ?? open(req, res)
    line.last = res
    const isFirst = line.answering === 0 && line.waiting.length === 0
    if (isFirst && (!round.isAwake() || bodyBytesOf(req) > 0)) begin(line, req, res)
    else wait(line, { req, res, weight: isFirst ? 0 : weightOf(req) })
  }

  // Use one map entry for each connection, not for each request. V8 keeps old tables of a map that changes often. Requests in these tables
  // would stay in memory and make young garbage collections ten times as long.
  const open = (req: IncomingMessage, res: ServerResponse): Line => {
    const { socket } = req
    onFirst(req, res)
    const line: Line = { socket, last: null, answering: 0, waiting: [], weight: 0, isInLine: false, isHeld: false, isCut: false }
    lines.set(socket, line)
    socket.once('close', () => {
      lines.delete(socket)
      forget(line)
    })
    governReading(line)
    return line
  }

  const begin = (line: Line, req: IncomingMessage, res: ServerResponse): void => {
    line.answering++
    res.on('close', () => {
      if (line.last === res) line.last = null
      line.answering--
      if (line.socket.destroyed) return
      if (line.isHeld && line.waiting.length < AT_ONCE) release(line)
      round.enter(line)
    })
    answer(req, res)
  }

  const wait = (line: Line, request: Waiting): void => {
    line.waiting.push(request)
    line.weight += request.weight
    waiting += request.weight
    if (line.waiting.length >= AT_ONCE) hold(line)
    round.enter(line)
    round.wake()
    if (line.weight > (thrownAway > waitingMax ? AT_ONCE : share)) cut(line)
    while (waiting > waitingMax) cut(fullest(lines.values(), line))
  }

  const beginNext = (line: Line): void => {
    const next = line.waiting.shift()
    if (next === undefined) return
    line.weight -= next.weight
    waiting -= next.weight
    begin(line, next.req, next.res)
  }
  const round = goRound(beginNext)

  const cut = (line: Line): void => {
    line.isCut = true
    if (thrownAway === 0) setTimeout(endSecond, 1000).unref()
    thrownAway += line.weight
    forget(line)
    line.socket.destroy()
  }

  const endSecond = (): void => {
    thrownAway = 0
  }

  const forget = (line: Line): void => {
    waiting -= line.weight
    line.weight = 0
    line.waiting.length = 0
  }

  return { handle, lastOwed: () => [...lines.values()].flatMap(({ last }) => last ?? []) }
}

/** Begins one request of each connection, round robin, and at most `TURNS_AT_ONCE` in a turn of the event loop. */
function goRound(beginNext: (line: Line) => void) {
  const queue: Line[] = []
  let isAwake = false

  const enter = (line: Line): void => {
    if (line.isInLine || line.waiting.length === 0) return
    if (line.answering >= AT_ONCE || line.socket.writableNeedDrain) return
    line.isInLine = true
    queue.push(line)
    wake()
  }

  // `takeTurns` runs once in a turn of the event loop, so that Node can read other connections in between.
  const wake = (): void => {
    if (isAwake) return
    isAwake = true
    setImmediate(takeTurns)
  }

  const takeTurns = (): void => {
    isAwake = false
    for (let turn = 0; turn < TURNS_AT_ONCE; turn++) {
      const line = queue.shift()
      if (line === undefined) return
      line.isInLine = false
      beginNext(line)
      enter(line)
    }
    if (queue.length > 0) wake()
  }

  return { enter, wake, isAwake: () => isAwake }
}

function weightOf(req: IncomingMessage): number {
  return 1 + Math.floor(Math.min(bodyBytesOf(req), READ_BYTES) / BODY_BYTES_PER_WEIGHT)
}

function bodyBytesOf({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : READ_BYTES
}

function fullest(lines: Iterable<Line>, first: Line): Line {
  let most = first
  for (const line of lines) if (line.weight > most.weight) most = line
  return most
}

function hold(line: Line): void {
  line.isHeld = true
  line.socket.pause()
}

function release(line: Line): void {
  line.isHeld = false
  line.socket.resume()
}

/** Keeps Node from reading a connection while `isHeld`, and from parsing the rest of a connection that was cut. */
function governReading(line: Line): void {
  const { socket } = line
  const { resume } = socket
  socket.resume = () => (line.isHeld ? socket : resume.call(socket))
  const parser = parserOf(socket)
  const take = parser?.onIncoming
  if (parser === null || !take) return
  parser.onIncoming = (req, keepAlive) => (line.isCut ? STOP_PARSING : take(req, keepAlive))
}

function parserOf(socket: object): Parser | null {
  return 'parser' in socket && isParser(socket.parser) ? socket.parser : null
}

function isParser(value: unknown): value is Parser {
  return typeof value === 'object' && value !== null && 'onIncoming' in value
}
