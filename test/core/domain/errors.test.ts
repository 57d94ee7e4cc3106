import { expect, test } from 'vitest'
import { AppError, systemCode } from '../../../src/core/domain/errors.ts'

test('an error shows the system’s code, and nothing that could quote a secret', () => {
  const coded = (code: unknown) => Object.assign(new Error('password=geheim'), { code })
  expect([coded('ECONNREFUSED'), coded('SQLITE_IOERR_READ'), coded('ERR_TLS_CERT_ALTNAME_INVALID')].map(systemCode)).toEqual([
    'ECONNREFUSED',
    'SQLITE_IOERR_READ',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ])
  const others = [
    new Error('none'),
    coded(7),
    coded('password=geheim'),
    coded('A'.repeat(65)),
    new AppError('not_found', 'x'),
    'ENOENT',
    null,
  ]
  expect(others.map(systemCode)).toEqual(others.map(() => null))
})
