import { randomBytes, scryptSync } from 'node:crypto'
import type { CredentialRefusal } from '../../domain/polling/carrier-memory.ts'

type Fingerprint = NonNullable<CredentialRefusal['mark']>

/** Two bytes are enough to notice a changed password. They do not reveal the password, because many passwords have the same two bytes. */
const DIGEST_BYTES = 2
const SALT_BYTES = 16

export function fingerprintPassword(password: string): Fingerprint {
  const salt = randomBytes(SALT_BYTES).toString('hex')
  return { salt, digest: digestOf(password, salt) }
}

export function hasFingerprint(password: string, { salt, digest }: Fingerprint): boolean {
  return digestOf(password, salt) === digest
}

function digestOf(password: string, salt: string): string {
  return scryptSync(password, salt, DIGEST_BYTES, { N: 4096 }).toString('hex')
}
