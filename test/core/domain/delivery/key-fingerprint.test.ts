import { expect, test } from 'vitest'
import { fingerprintKey } from '../../../../src/core/domain/delivery/endpoint-keys.ts'

test('a fingerprint is the beginning of what openssl computes for the same text', () => {
  // The expected text is from: printf %s 'parcel-relay key fingerprint' | openssl dgst -sha256 -hmac 'a-shared-key-for-tests-only'
  expect(fingerprintKey('a-shared-key-for-tests-only')).toBe('2bc1a2ef')
})
