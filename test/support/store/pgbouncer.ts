import { spawn } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { vi } from 'vitest'
import { freePort, SERVER_USER } from '../../../src/trial/demo/postgres/throwaway-server.ts'
import { temporaryFolder } from '../runner/temporary.ts'
import { ownGroup, tieToTest } from '../runner/tied-process.ts'

/** Starts a pooler with this many connections. A client has a connection only for a transaction. Returns the URL of the database through the pooler. */
export async function startPgbouncer(url: string, connections: number): Promise<string> {
  const { hostname, port: serverPort, pathname, username, password } = new URL(url)
  const folder = temporaryFolder()
  const port = await freePort()
  const write = (name: string, text: string) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    if (SERVER_USER.uid !== undefined) chownSync(path, SERVER_USER.uid, SERVER_USER.gid)
    return path
  }
  if (SERVER_USER.uid !== undefined) chownSync(folder, SERVER_USER.uid, SERVER_USER.gid)
  const users = write('users.txt', `"${username}" "${password}"\n`)
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    pool_mode: 'transaction',
    default_pool_size: connections,
    logfile: '/dev/null',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const config = write('pgbouncer.ini', `[databases]\n* = host=${hostname} port=${serverPort}\n[pgbouncer]\n${lines.join('\n')}\n`)
  tieToTest(spawn('pgbouncer', ['-q', config], { ...ownGroup, ...SERVER_USER, cwd: '/', stdio: 'ignore' }))
  await vi.waitFor(() => untilListening(port))
  return `postgres://${username}:${password}@127.0.0.1:${port}${pathname}`
}

async function untilListening(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve).once('error', reject)
  }).finally(() => socket.destroy())
}
