import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface RequestTurns {
  /** For every request as the platform tells of it. */
  readonly handle: RequestListener
  /** Of every connection that owes answers the last one: whatever else it owes goes before it. */
  lastOwed(): readonly ServerResponse[]
}

interface Waiting {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly weight: number
}

/** A connection. */
interface Line {
  readonly socket: Socket
  /** The last answer that is owed. */
  last: ServerResponse | null
  /** How many requests are being answered, or are answered and not taken yet. */
  answering: number
  /** Requests that came behind these, in order, and what they weigh together. */
  readonly waiting: Waiting[]
  weight: number
  /** Whether it has its place among those whose turn comes. */
  isInLine: boolean
  /** Whether nothing more is read from it for now. */
  isHeld: boolean
  isCut: boolean
}

/** What of the platform's parser is used; it declares nothing of it. */
interface Parser {
  onIncoming: ((req: IncomingMessage, keepAlive: boolean) => number) | null
}

/** Of one connection so many are answered at a time: who takes no answer has no more of them kept for him. */
const AT_ONCE = 8
/** So many requests that waited are begun before others' bytes are read. */
const TURNS_AT_ONCE = 32
/** Of all that may wait, one connection may have this part. */
const SHARES = 16
/** A body of this size that waits weighs as much as a request. */
const BODY_BYTES_PER_WEIGHT = 4096
/** What is read of a connection at a time: as much may be held of a body that does not say how long it is. */
const READ_BYTES = 64 * 1024
/** Ends the parsing of what was read. */
const STOP_PARSING = -1

/**
 * Shares the answering among connections. A connection's first request is answered at once. Those that came behind it without waiting for an
 * answer wait for their turn, which goes round: one request of each connection. The platform parses all that it reads at once, some 2,500
 * requests; so what waits over all connections is bounded by `waitingMax`, and beyond it the connection on which most waits is closed.
 */
export function shareTurns(answer: RequestListener, waitingMax: number): RequestTurns {
  const share = Math.max(AT_ONCE, Math.floor(waitingMax / SHARES))
  const lines = new Map<Socket, Line>()
  let waiting = 0
  /** How much that waited was thrown away within the last second: parsing it took its time and memory. */
  let thrownAway = 0

  const handle: RequestListener = (req, res) => {
    const line = lines.get(req.socket) ?? open(req.socket)
    line.last = res
    const isFirst = line.answering === 0 && line.waiting.length === 0
    if (isFirst && (!round.isAwake() || bodyBytesOf(req) > 0)) begin(line, req, res)
    else wait(line, { req, res, weight: isFirst ? 0 : weightOf(req) })
  }

  // Once a connection, not once a request: a map whose entries come and go leaves tables behind that hold on to all they ever held, and
  // whole requests then outlive the collector's quick rounds, which take ten times as long.
  const open = (socket: Socket): Line => {
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

/** Takes connections in turns: one request of each, so many in a turn of the event loop. */
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

  // Once a turn of the event loop: others' bytes are read in between.
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

/** Keeps the platform from reading on while a connection is held, and from parsing on once it is cut: it looks at neither by itself. */
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
