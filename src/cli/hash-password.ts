import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { hash } from '@node-rs/argon2'
import { Command } from 'commander'
import { fail, withExitCodes } from './exit-codes.ts'

// The least that OWASP's password storage advice accepts of argon2id, the library's default kind.
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const
const BYTES_MAX = 4096

/** `hash-password`: never takes the password as an argument, where `ps` and the shell's history would keep it. */
export function hashPasswordCommand(): Command {
  const command = new Command('hash-password')
    .description('print the argon2id hash of a password, for apps[].passwordHash; asks for it, or reads it from standard input')
    // The library's own message would repeat what it was given, and that is a password.
    .configureOutput({ outputError: (_, write) => write('hash-password: takes no arguments; it asks, or reads standard input\n') })
    .action(async () => {
      const password = process.stdin.isTTY ? await askTwice() : await readAll()
      const problem = problemOf(password)
      if (password === null || problem !== null) return fail(`hash-password: ${problem}`)
      process.stdout.write(`${await hash(password, COST)}\n`)
    })
  return withExitCodes(command)
}

function problemOf(password: string | null): string | null {
  if (password === null) return 'the two were not the same; nothing was hashed'
  if (password.trim() === '') return 'the password is empty; pipe it in, or run this on a terminal'
  if (Buffer.byteLength(password) > BYTES_MAX) return `the password is longer than ${BYTES_MAX} bytes`
  return null
}

/** One newline at the end is the shell's, not the password's. */
async function readAll(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  const input: AsyncIterable<Uint8Array> = process.stdin
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    size += bytes.length
    if (size > BYTES_MAX * 2) break
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}

/** `null`: the second differed from the first. */
async function askTwice(): Promise<string | null> {
  // The terminal must not echo: what readline would draw goes nowhere.
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
