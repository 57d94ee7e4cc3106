import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface PrivateAuthority {
  /** The certificate of the authority, in PEM. */
  readonly ca: string
  readonly caFile: string
  /** Issues a server certificate for a name. `days`: how long it is valid; negative: it has expired. */
  sign(name: string, days?: number): { readonly cert: string; readonly key: string }
}

/** Returns a private certificate authority, which openssl creates in a folder on first use. No system trusts it. */
export function createAuthority(folder: string): PrivateAuthority {
  const file = (name: string) => join(folder, name)
  const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'ignore'] })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const make = () =>
    openssl('req', '-x509', ...newKey, '-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', '/CN=Private Authority', '-days', '2')
  let isMade = false
  const ensureMade = () => {
    if (!isMade) make()
    isMade = true
  }
  return {
    get ca() {
      ensureMade()
      return readFileSync(file('ca.pem'), 'utf8')
    },
    caFile: file('ca.pem'),
    sign(name, days = 2) {
      ensureMade()
      const [key, asked, cert, names] = ['key', 'csr', 'pem', 'ext'].map((ending) => file(`${name}.${ending}`))
      writeFileSync(String(names), `subjectAltName=DNS:${name}\n`)
      openssl('req', ...newKey, '-keyout', String(key), '-out', String(asked), '-subj', `/CN=${name}`)
      const by = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial']
      openssl('x509', '-req', '-in', String(asked), ...by, '-out', String(cert), '-days', String(days), '-extfile', String(names))
      return { cert: readFileSync(String(cert), 'utf8'), key: readFileSync(String(key), 'utf8') }
    },
  }
}
