import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandsWithin, EXAMPLES } from '../../../src/console/cli/examples.ts'
import { createProgram } from '../../../src/console/cli/program.ts'
import { WINGS } from '../../../src/wings.ts'
import { runCommand } from '../../support/relay/run-command.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'

const program = await createProgram()
const commands = commandsWithin(program)

test('the help lists every command that a wing offers', () => {
  const offered = WINGS.flatMap(({ commands = {} }) => Object.keys(commands))
  expect(offered.length).toBeGreaterThan(5)
  expect(program.commands.map((command) => command.name())).toEqual(expect.arrayContaining(offered))
})

test('every command has an example, and each example uses the command', () => {
  expect(Object.keys(EXAMPLES).toSorted()).toEqual(commands.map(({ path }) => path).toSorted())
  for (const [path, examples] of Object.entries(EXAMPLES)) for (const example of examples) expect(example.startsWith(path)).toBe(true)
})

test('every option in an example is an option of its command', () => {
  const wrong = commands.flatMap(({ path, command }) =>
    (EXAMPLES[path] ?? []).flatMap((example) => {
      // A group of commands runs a default subcommand, so its examples may use the options of subcommands.
      const known = commandsWithin(command, path).flatMap((one) => one.command.options.map(({ long }) => long))
      const used = [...example.matchAll(/ (--[a-z-]+)/g)].map(([, option]) => option)
      return used.filter((option) => !known.includes(option)).map((option) => `${example}: ${option}`)
    }),
  )
  expect(wrong).toEqual([])
})

test('--help shows what a command does, its options and its example, and exits with 0', async () => {
  const help = await runCommand(['endpoints', 'add', '--help'])
  expect(help.code).toBe(0)
  expect(help.stdout).toMatch(/^Usage: parcel-relay endpoints add \[options\] <name> <url>/)
  expect(help.stdout).toContain('RELAY_URL')
  expect(help.stdout).toMatch(/\nExample:\n {2}\$ parcel-relay endpoints add shop /)
  const unknown = await runCommand(['endpoints', 'list', '--nosuch'])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("unknown option '--nosuch'")])
})

testWith('bash')('the completion of bash completes commands, options and the values of options', async () => {
  const { stdout: script, code } = await runCommand(['completion', 'bash'])
  expect(code).toBe(0)
  const file = join(temporaryFolder(), 'completion.bash')
  writeFileSync(file, script)
  const complete = (...words: readonly string[]) => {
    const ask = `source "$1"; shift; COMP_WORDS=(parcel-relay "$@"); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); _parcel_relay; echo "\${COMPREPLY[*]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', ask, 'bash', file, ...words], { encoding: 'utf8' })
    return `${stderr}${stdout}`.trim()
  }
  expect(complete('endp')).toBe('endpoints')
  expect(complete('endpoints', 'ro')).toBe('rotate')
  expect(complete('endpoints', 'rotate', '--k')).toBe('--key-file --key-env')
  expect(complete('deliveries', 'list', '--state', 'de')).toBe('delivered dead')
  expect(complete('completion', 'z')).toBe('zsh')
  expect(complete('restore', 'backups/')).toBe('')
})

test.each(['zsh', 'fish'])('the completion of %s names every command', async (shell) => {
  const { stdout, code } = await runCommand(['completion', shell])
  expect(code).toBe(0)
  for (const { path } of commands) expect(stdout).toContain(path)
})

test('a completion for an unknown shell is a usage error', async () => {
  expect(await runCommand(['completion', 'tcsh'])).toMatchObject({ code: 2, stderr: expect.stringContaining('bash, zsh, fish') })
})
