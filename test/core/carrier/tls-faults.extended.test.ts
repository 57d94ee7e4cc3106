import { writeFileSync } from 'node:fs'
import { createServer as createPlainServer } from 'node:http'
import { createServer } from 'node:https'
import { connect as connectTcp, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test as plainTest } from 'vitest'
import { wordFailure } from '../../../src/console/problems/words.ts'
import { carrierRemedy, failureCode, failureText, lastFailureText } from '../../../src/core/domain/polling/carrier-answer.ts'
import { type TlsFault, tlsFaultOf, tlsMeaning, tlsRemedy } from '../../../src/core/domain/system-reason.ts'
import { createReadiness } from '../../../src/core/flow/admin/readiness.ts'
import { createUpstream } from '../../../src/core/flow/polling/upstream.ts'
import { createEgressGuard } from '../../../src/core/outbound/egress-guard.ts'
import { tryConnection } from '../../../src/core/outbound/try-connection.ts'
import { isStorageFailure } from '../../../src/server/postgres/postgres.ts'
import { openingFailure, runningFailure } from '../../../src/server/postgres/postgres-failure.ts'
import { carrierProbe, endpointProbes } from '../../../src/upkeep/check/outbound-probes.ts'
import { listen, listenInTest } from '../../support/network/listen.ts'
import { createAuthority } from '../../support/network/private-authority.ts'
import { WELL } from '../../support/portal/situation.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'
import { certificate, certificateKey } from '../outbound/self-signed.ts'
import { LOOPBACK, openSender } from '../outbound/sender-world.ts'
import { closeOpened, connect } from './carrier-double.ts'

afterEach(closeOpened)

const READY: Omit<Parameters<typeof createReadiness>[0], 'carrier'> = {
  reads: { ping: async () => undefined },
  disk: { trouble: () => null, state: () => ({ freeBytes: 0, lost: null }) },
  pushHealth: () => 'unknown',
  misdirected: async () => [],
  lostKeys: async () => null,
  caughtUp: async () => undefined,
}
const UPSTREAM: Omit<Parameters<typeof createUpstream>[0], 'carrier'> = {
  write: { pushChannel: async () => WELL.pushes },
  version: '1',
  refusedSenders: async () => [],
}

/** Opens a server with the fault. `ca`: the authority that those who ask it trust. */
async function openFaulty(fault: TlsFault): Promise<{ readonly url: string; readonly ca: string | undefined }> {
  const authority = createAuthority(temporaryFolder())
  const url = async (server: Parameters<typeof listenInTest>[0]) => `https://localhost:${await listenInTest(server)}`
  const answer = () => undefined
  if (fault === 'tls_protocol') return { url: await url(createPlainServer(answer)), ca: undefined }
  if (fault === 'certificate_self_signed')
    return { url: await url(createServer({ cert: certificate, key: certificateKey }, answer)), ca: undefined }
  const pair = authority.sign(fault === 'certificate_wrong_name' ? 'shop.internal' : 'localhost', fault === 'certificate_expired' ? -1 : 2)
  return { url: await url(createServer(pair, answer)), ca: fault === 'certificate_untrusted' ? undefined : authority.ca }
}

const FAULTS = [
  'certificate_expired',
  'certificate_wrong_name',
  'certificate_self_signed',
  'certificate_untrusted',
  'tls_protocol',
] as const

testWith('openssl').for(FAULTS)('%s: deliveries, checks and the carrier name it in the same words, with its remedy', async (fault) => {
  const { url, ca } = await openFaulty(fault)
  const { host } = new URL(url)
  await using world = openSender({ lookup: async () => ['127.0.0.1'] })
  const sent = await world.post(url, ca)
  expect(sent).toMatchObject({ kind: 'failed', reason: fault })
  const words = wordFailure({ status: null, reason: fault, answerStart: new Uint8Array() }, url, 'all')
  expect(words).toMatchObject({ meaning: `${tlsMeaning(fault, host)}.`, remedy: tlsRemedy(fault, 'caFile') })

  const guard = createEgressGuard({ allowNetworks: LOOPBACK, ownPorts: () => [], lookup: async () => ['127.0.0.1'] })
  const endpoint = { name: 'shop', url, enabled: true, trouble: null, route: () => (ca === undefined ? {} : { ca }) }
  const [probe] = endpointProbes([endpoint], (to) => tryConnection(to, { guard, timeoutMs: 5000 }))
  expect(await probe?.look()).toEqual({ state: 'failed', message: `${host}: ${words.meaning} ${words.remedy}` })

  const { carrier, fetchAll } = connect(url, ca === undefined ? {} : { ca })
  expect((await fetchAll()).kind).toBe('unavailable')
  const { lastFailure } = carrier.state()
  if (lastFailure === null) throw new Error('it failed')
  expect([lastFailureText(lastFailure), carrierRemedy(lastFailure)]).toEqual([
    tlsMeaning(fault, 'the carrier'),
    tlsRemedy(fault, 'upstream.caFile'),
  ])
  expect(failureText(failureCode(lastFailure))).toBe(tlsMeaning(fault, 'the carrier'))
  const notes = await createReadiness({ ...READY, carrier }).read()
  expect(notes).toMatchObject({ notes: { upstream: { state: fault, lastFailure: fault } } })
  expect(await createUpstream({ ...UPSTREAM, carrier }).read()).toMatchObject({ lastFailure: { reason: fault } })
  const [login] = [await carrierProbe(carrier, { language: 'en', known: async () => null, loginSetting: 'upstream.baseUrl' }).look()].flat()
  expect(login?.message).toContain(tlsMeaning(fault, 'the carrier'))
})

/** Opens a server that agrees to encrypt a connection as PostgreSQL does, and then speaks TLS with the fault. */
async function openFaultyDatabase(fault: TlsFault): Promise<string> {
  const { url, ca } = await openFaulty(fault)
  const server = createTcpServer((socket) => {
    socket.once('data', () => {
      const { port } = new URL(url)
      const faulty = connectTcp(Number(port), '127.0.0.1')
      socket.write('S')
      socket.pipe(faulty).pipe(socket)
      socket.on('error', () => undefined)
      faulty.on('error', () => undefined)
    })
  })
  onTestFinished(() => void server.close())
  const port = await listen(server)
  const file = join(temporaryFolder(), 'ca.pem')
  if (ca !== undefined) writeFileSync(file, ca)
  return `postgres://relay:secret@localhost:${port}/relay?sslmode=verify-full${ca === undefined ? '' : `&sslrootcert=${file}`}`
}

testWith('openssl').for(FAULTS)('%s: PostgreSQL names it in the same words, and its questions are 503', async (fault) => {
  const error: unknown = await openTestPool(await openFaultyDatabase(fault))
    .query('select 1')
    .catch((thrown: unknown) => thrown)
  const meaning = tlsMeaning(fault, 'the server')
  expect(openingFailure('postgres://relay@db/relay', error)).toMatchObject({
    message: `store: no encrypted connection to postgres://relay@db/relay can be made: ${meaning}. ${tlsRemedy(fault, 'sslrootcert')}`,
  })
  expect(isStorageFailure(error)).toBe(true)
  expect(runningFailure(error).message).toBe(tlsMeaning(fault, 'the server of the database'))
})

plainTest('each code of TLS has a fault, each fault words and a remedy of its own, and other codes have none', () => {
  const faults = {
    CERT_HAS_EXPIRED: 'certificate_expired',
    CERT_NOT_YET_VALID: 'certificate_not_yet_valid',
    ERR_TLS_CERT_ALTNAME_INVALID: 'certificate_wrong_name',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'certificate_self_signed',
    SELF_SIGNED_CERT_IN_CHAIN: 'certificate_untrusted',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate_untrusted',
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate_untrusted',
    EPROTO: 'tls_protocol',
    ERR_SSL_WRONG_VERSION_NUMBER: 'tls_protocol',
    ERR_SSL_UNSUPPORTED_PROTOCOL: 'tls_protocol',
    ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'tls_protocol',
    CERT_REVOKED: 'tls',
    ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: 'tls',
    ECONNREFUSED: null,
  } as const
  for (const [code, fault] of Object.entries(faults)) expect([code, tlsFaultOf(code)]).toEqual([code, fault])
  const kinds = [...new Set(Object.values(faults))].filter((fault) => fault !== null)
  expect(kinds).toHaveLength(7)
  for (const words of [tlsMeaning, tlsRemedy]) expect(new Set(kinds.map((kind) => words(kind, 'x'))).size).toBe(7)
})
