import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import { describeFailure, knownReason } from '../../../src/core/domain/system-reason.ts'

const coded = (message: string, code: string) => Object.assign(new Error(message), { code })

/** Returns the error that a function throws or rejects with. */
async function failureOf(work: () => unknown): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    return error
  }
}

test('the errors of the system are described in words', async () => {
  const missing = await failureOf(() => readFileSync('/no-such-folder/relay.db'))
  const folder = await failureOf(() => readFileSync('/'))
  const closed = await failureOf(
    () =>
      new Promise((_, reject) => connect({ host: '127.0.0.1', port: 1 }, () => reject(new Error('port 1 is open'))).on('error', reject)),
  )
  expect([missing, folder, closed].map(describeFailure)).toEqual([
    '/no-such-folder/relay.db: there is no such file or folder',
    'it is a folder',
    'nothing listens there',
  ])
})

test.each([
  ['a full disk in another thread', new Error('SQLITE_FULL: database or disk is full'), 'the disk is full'],
  ['a failing disk', coded('disk I/O error', 'SQLITE_IOERR_FSYNC'), 'the disk fails'],
  ['a server without room', coded('could not extend file "base/1": No space left', '53100'), "the disk of the database's server is full"],
  ['a sentence of ours', new Error('the table inbox is damaged: row 7.'), 'the table inbox is damaged: row 7'],
  ['a sentence of ours about the store', new StorageFailure('the database failed', coded('x', '53100')), 'the database failed'],
  [
    'a sentence of ours with a code beside it',
    coded('no relay answers at http://127.0.0.1:1', 'ECONNREFUSED'),
    'no relay answers at http://127.0.0.1:1',
  ],
  ['a rare code', coded('EBADF: bad file descriptor', 'EBADF'), 'EBADF: bad file descriptor'],
  ['no error', 'broken.', 'broken'],
])('%s is described to people', (_what, error, words) => expect(describeFailure(error)).toBe(words))

test.each([
  ['SQLITE_BUSY_SNAPSHOT', 'another program has locked the store'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'the certificate of the other side is signed by itself, so nobody vouches for it'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'the certificate of the other side is for another name'],
  ['status 503', null],
])('the code %s is described as %s', (code, words) => expect(knownReason(code)).toBe(words))
