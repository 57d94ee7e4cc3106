import { closeSync, fstatSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { openRegular } from '../../regular-file.ts'
import type { SecretOrigin } from '../domain/delivery/endpoint-keys.ts'
import { systemCode } from '../domain/errors.ts'
import { systemReason } from '../domain/system-reason.ts'
import { createSecret, type Secret } from './secret.ts'

/** A secret as written in the config file: its environment variable, its file, or (discouraged) the secret itself. */
type SecretReference = string | { readonly env: string } | { readonly file: string }

type SecretReading =
  | { readonly kind: 'read'; readonly secret: Secret; readonly warnings: readonly string[] }
  | {
      readonly kind: 'unreadable'
      readonly problem: string /** Or the path of a credential of systemd that is gone. */
      readonly unsetVariable?: string
    }

/** `warn`: whether the schema also reports allowed but unwise values, as issues marked as warnings. */
export interface SchemaContext {
  readonly env: NodeJS.ProcessEnv
  readonly warn: boolean
}

const FORM = 'must be { env: NAME } or { file: PATH }, or (discouraged) the text itself in quotes'
const FILE_BYTES_MAX = 65_536
/** Where systemd places the credentials of a service, for as long as it runs. */
const CREDENTIALS = '/run/credentials/'

const reference = z
  .union(
    [
      z.string().describe('The secret itself. Discouraged: it is then in every copy of the file.'),
      z.strictObject({
        env: z
          .string()
          .regex(/^[A-Za-z_]\w*$/, { error: 'must be the name of an environment variable: letters, digits and _' })
          .describe('Name of the environment variable that holds it.'),
      }),
      z.strictObject({
        file: z.string().min(1, { error: 'must be the path of a file' }).describe('File that holds it; one newline at its end is dropped.'),
      }),
    ],
    { error: FORM },
  )
  .meta({ $comment: 'secret' })

/** Checks the text of a secret. Null: nothing is wrong. A message must not repeat the text. */
export interface SecretCheck {
  readonly problem?: (text: string) => string | null
  readonly warning?: (text: string) => string | null
}

export function secret(context: SchemaContext, check: SecretCheck = {}) {
  const read = readChecked(context, check)
  return reference.transform((written, issues): Secret => read(written, (issue) => issues.addIssue({ ...issue })) ?? z.NEVER)
}

/** Creates the schema of a setting that holds a secret, or a list of two during a change of the secret. */
export function oneOrTwoSecrets(context: SchemaContext, check: SecretCheck = {}) {
  const read = readChecked(context, check)
  const few = { error: 'must be a list of one or two' }
  return z
    .union([reference, z.array(reference).min(1, few).max(2, few)], { error: `${FORM}; or a list of two` })
    .transform((written, issues) => {
      if (!Array.isArray(written)) return [read(written, (issue) => issues.addIssue({ ...issue })) ?? z.NEVER]
      return written.map((each, at) => read(each, (issue) => issues.addIssue({ ...issue, path: [at] })) ?? z.NEVER)
    })
}

interface SecretIssue {
  readonly code: 'custom'
  readonly message: string
  readonly params?: { readonly warning: true } | { readonly unsetVariable: string }
}

/** The returned function reports what is wrong with a secret, and returns null if the secret cannot be read. */
function readChecked({ env, warn }: SchemaContext, check: SecretCheck) {
  return (written: SecretReference, report: (issue: SecretIssue) => void): Secret | null => {
    const reading = readSecret(written, env)
    if (reading.kind === 'unreadable') {
      const { problem: message, unsetVariable } = reading
      report({ code: 'custom', message, ...(unsetVariable === undefined ? {} : { params: { unsetVariable } }) })
      return null
    }
    const text = reading.secret.reveal()
    const problem = check.problem?.(text) ?? null
    if (problem !== null) report({ code: 'custom', message: problem })
    const unwise = check.warning?.(text) ?? null
    for (const message of !warn ? [] : unwise === null ? reading.warnings : [...reading.warnings, unwise])
      report({ code: 'custom', message, params: { warning: true } })
    return reading.secret
  }
}

/** Says why a signing key is weak, without repeating the key; null: it is not weak. */
export function looksWeak(key: string): string | null {
  if (/change.?me/i.test(key)) return 'looks like a placeholder: make a real one with `parcel-relay generate-key`'
  if (Buffer.byteLength(key) < 16) return 'is shorter than 16 bytes and may be guessed: make a longer one with `parcel-relay generate-key`'
  return null
}

/** An empty or blank secret is refused like a missing one, because anyone could guess it and sign with it. */
export function readSecret(written: SecretReference, env: NodeJS.ProcessEnv): SecretReading {
  if (typeof written === 'string') return accept(written, null, [])
  if ('env' in written) {
    const value = env[written.env]
    if (value !== undefined) return accept(value, written, [])
    const problem = `needs the environment variable ${written.env}, which is not set: set it, or write { file: PATH }`
    return { kind: 'unreadable', problem, unsetVariable: written.env }
  }
  return readSecretFile(written.file)
}

function readSecretFile(path: string): SecretReading {
  let bytes: Uint8Array
  let mode: number
  try {
    const handle = openRegular(path)
    try {
      const stat = fstatSync(handle)
      if (stat.size > FILE_BYTES_MAX)
        return unreadable(`names the file ${path}, which is too large for a secret (over ${FILE_BYTES_MAX} bytes)`)
      mode = stat.mode
      bytes = readFileSync(handle)
    } finally {
      closeSync(handle)
    }
  } catch (cause) {
    if (path.startsWith(CREDENTIALS) && systemCode(cause) === 'ENOENT')
      return {
        kind: 'unreadable',
        problem: `names ${path}, a credential of systemd, which exists only while its service runs`,
        unsetVariable: path,
      }
    const remedy = systemCode(cause) === 'EACCES' ? 'run this as the user of the relay' : 'create it, or correct the path'
    return unreadable(`names the file ${path}, which cannot be read (${systemReason(cause)}): ${remedy}`)
  }
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return unreadable(`names the file ${path}, which begins with a byte order mark: save it as UTF-8 without one`)
  }
  const text = decode(bytes)
  if (text === null) return unreadable(`names the file ${path}, which is not UTF-8 text`)
  const open = (mode & 0o004) === 0 ? [] : [`is read from ${path}, which every user of this machine can read: chmod o-r it`]
  return accept(text.replace(/\r?\n$/, ''), { file: path }, open)
}

function accept(text: string, from: SecretOrigin | null, warnings: readonly string[]): SecretReading {
  const origin = from === null ? 'the text' : 'env' in from ? `environment variable ${from.env}` : `file ${from.file}`
  if (text.trim() === '') return unreadable(`must not be empty or white space, but ${origin} is: give it a value`)
  const edges = text.trim() === text ? [] : [`begins or ends with white space (${origin}), which counts as part of it`]
  const quotes = /^(["']).+\1$/s.test(text) ? [`is in quotes (${origin}), which count as part of it: leave them out`] : []
  return { kind: 'read', secret: createSecret(text, from), warnings: [...warnings, ...edges, ...quotes] }
}

function unreadable(problem: string): SecretReading {
  return { kind: 'unreadable', problem }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}
