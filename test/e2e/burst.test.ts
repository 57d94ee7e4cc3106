import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

/** More than the 511 that Node lets wait. */
const CLIENTS = 1000

// The system's own limit is 4096 on today's Linux; elsewhere a relay can let no more wait.
test.skipIf(systemsLimit() < CLIENTS)(
  'H23: a thousand clients that connect while the relay is busy all wait and get an answer',
  async () => {
    await using relay = await runRelay(writeConfig(temporaryFolder(), NO_CARRIER, {}))
    relay.process.kill('SIGSTOP')
    const { port } = new URL(relay.publicUrl)
    const sockets = Array.from({ length: CLIENTS }, () => connect(Number(port), '127.0.0.1'))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    for (const socket of sockets) socket.write('GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n')
    const answers = Promise.all(sockets.map((socket) => once(socket, 'data')))
    relay.process.kill('SIGCONT')
    expect(new Set((await answers).map(([bytes]) => String(bytes).slice(0, 15)))).toEqual(new Set(['HTTP/1.1 200 OK']))
  },
)

function systemsLimit(): number {
  try {
    return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
  } catch {
    return 0
  }
}
