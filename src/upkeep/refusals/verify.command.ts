import { closeSync, openSync, readSync } from 'node:fs'
import { Command } from 'commander'
import { readConfig } from '../../console/cli/asking/config-file.ts'
import { withExitCodes } from '../../console/cli/exit-codes.ts'
import type { LoadSections } from '../../core/config/schema.ts'
import { type SigningKeys, signingKeysIn, signingKeysOf } from '../../core/config/signing-keys.ts'
import { type Explanation, explainMismatch } from './explain-mismatch.rules.ts'
import { describeCause } from './mismatch-causes.rules.ts'

interface VerifyOptions {
  readonly signature: readonly string[]
  readonly config: string
  readonly keyFile: readonly string[]
  readonly keyEnv: readonly string[]
  readonly json?: true
}

/** The largest value that `webhook.bodyBytesMax` may have. */
const BODY_BYTES_MAX = 64 * 1024 * 1024
/** With these bounds, the search takes some seconds for a usual body, and a minute for the largest. */
const BOUNDS = { triesMax: 200_000, hashedBytesMax: 4 * 1024 * 1024 * 1024 }

/** `verify`: says whether the signature of a body matches and, if not, why. It needs neither the store nor a running relay. */
export function verifyCommand(loadSections: LoadSections): Command {
  const all = (value: string, before: readonly string[] = []) => [...before, value]
  const command = new Command('verify')
    .description('tell whether a signature matches the bytes of a file and, if not, why')
    .argument('<file>', 'the exact body as it arrived; - reads standard input')
    .requiredOption('--signature <value>', 'the value of x-service-hmac-sha256; may be repeated, as headers may', all)
    .option('--config <file>', 'the config whose keys are tried', 'config/relay.yaml')
    .option('--key-file <file>', 'try the key in this file instead of the config; may be repeated', all, [])
    .option('--key-env <name>', 'try the key in this environment variable instead; may be repeated', all, [])
    .option('--json', 'print JSON')
    .action(async (file: string, options: VerifyOptions) => {
      const keys = await keysFor(options, loadSections)
      if (keys === null) return
      const body = readBounded(file, BODY_BYTES_MAX)
      const push = { body, signatures: options.signature, webhookId: null, webhookTimestamp: null, keys: keys.push, otherKeys: keys.others }
      const explanation = explainMismatch(push, BOUNDS)
      process.stdout.write(options.json === true ? `${JSON.stringify(asJson(explanation))}\n` : describe(explanation))
      if (explanation.verdict !== 'valid') process.exitCode = 1
    })
  return withExitCodes(command)
}

/** Reads the keys to try. If the config has problems, reports them and returns null. */
async function keysFor({ config: path, keyFile, keyEnv }: VerifyOptions, loadSections: LoadSections): Promise<SigningKeys | null> {
  if (keyFile.length + keyEnv.length > 0) return signingKeysIn(keyFile, keyEnv)
  const config = await readConfig(path, await loadSections())
  return config === null ? null : signingKeysOf(config)
}

/** Reads a file or a pipe to its end. Throws if it has more than `bytesMax` bytes. */
function readBounded(file: string, bytesMax: number): Buffer {
  const opened = file === '-' ? STANDARD_INPUT : openSync(file, 'r')
  const parts: Buffer[] = []
  try {
    for (let total = 0; ; ) {
      const part = Buffer.alloc(PART_BYTES)
      const length = readSync(opened, part)
      if (length === 0) return Buffer.concat(parts)
      total += length
      if (total > bytesMax) throw new Error(`${file} is larger than ${bytesMax} bytes`)
      parts.push(part.subarray(0, length))
    }
  } finally {
    if (opened !== STANDARD_INPUT) closeSync(opened)
  }
}

const STANDARD_INPUT = 0
const PART_BYTES = 64 * 1024

function describe({ verdict, key, causes, isCutShort }: Explanation): string {
  if (verdict === 'valid') return `The signature matches: ${key ?? ''}.\n`
  const lines = causes.map((cause) => `- ${describeCause(cause)}`)
  const ends = [
    ...(key === null ? [] : [`With that put right, it matches ${key}.`]),
    ...(isCutShort ? ['The body is large, so not everything was tried.'] : []),
  ]
  return `${['The signature does not match.', ...lines, ...ends].join('\n')}\n`
}

function asJson({ verdict, key, causes, isCutShort }: Explanation): object {
  return { verdict, key, causes: causes.map((cause) => ({ ...cause, explanation: describeCause(cause) })), cutShort: isCutShort }
}
