import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { Command } from 'commander'
import { fail, withExitCodes } from './exit-codes.ts'

// The minimum that OWASP recommends for argon2id.
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const
const BYTES_MAX = 4096
/** A shorter password gets a warning, because somebody who has the hash can guess it by trying. */
const LENGTH_ADVISED = 12
const SHORT = `hash-password: warning: the password has fewer than ${LENGTH_ADVISED} characters and may be guessed; take a longer one\n`

/** The password is never an argument, because `ps` and the shell history show arguments. */
export function hashPasswordCommand(): Command {
  const command = new Command('hash-password')
    .description('print the argon2id hash of a password, for apps[].passwordHash; prompts for it, or reads standard input')
    // commander's own message would repeat the argument, which is likely a password.
    .configureOutput({
      outputError: (_, write) => write('hash-password: takes no arguments; it prompts for the password or reads standard input\n'),
    })
    .action(async () => {
      const password = process.stdin.isTTY ? await askTwice() : await readAll()
      const problem = problemOf(password)
      if (password === null || problem !== null) return fail(`hash-password: ${problem}`)
      if (Array.from(password).length < LENGTH_ADVISED) process.stderr.write(SHORT)
      const { hash } = await import('@node-rs/argon2')
      process.stdout.write(`${await hash(password, COST)}\n`)
    })
  return withExitCodes(command)
}

function problemOf(password: string | null): string | null {
  if (password === null) return 'the two passwords differ; nothing was hashed'
  if (password.trim() === '')
    return 'the password is empty. Run this in a terminal (in a container: docker exec -it), or give it a file: hash-password < FILE'
  if (Buffer.byteLength(password) > BYTES_MAX) return `the password is longer than ${BYTES_MAX} bytes`
  return null
}

/** If standard input is silent for this long, a person is probably typing. A file or a pipe delivers sooner. */
const QUIET_MS = 1000
const SEEN =
  'hash-password: standard input is no terminal, so what you type here can be seen. Press Ctrl-C, and run this in a terminal (in a container: docker exec -it).\n'

/** Reads the password from standard input, without the one newline that a shell adds at the end. */
async function readAll(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  const warned = setTimeout(() => process.stderr.write(SEEN), QUIET_MS)
  const input: AsyncIterable<Uint8Array> = process.stdin
  for await (const chunk of input) {
    clearTimeout(warned)
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    size += bytes.length
    if (size > BYTES_MAX * 2) break
  }
  clearTimeout(warned)
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}

/** Null: the two answers differ. */
async function askTwice(): Promise<string | null> {
  // readline echoes what is typed to this output, so the terminal does not show the password.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const prompt = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  prompt.on('SIGINT', () => process.exit(130))
  try {
    const answers: string[] = []
    for (const label of ['Password: ', 'Again: ']) {
      process.stderr.write(label)
      answers.push(await prompt.question(''))
      process.stderr.write('\n')
    }
    return answers[0] === answers[1] ? (answers[0] ?? null) : null
  } finally {
    prompt.close()
  }
}

/** `generate-key`: prints 32 random bytes in Base64, for a shared key or an at-rest key. */
export function generateKeyCommand(): Command {
  const command = new Command('generate-key')
    .description('print a new random key (32 bytes in Base64), for webhook.sharedKeys, an endpoint or secrets.atRestKeys')
    .action(() => {
      process.stdout.write(`${randomBytes(32).toString('base64')}\n`)
    })
  return withExitCodes(command)
}
