import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandsWithin, EXAMPLES } from '../../../src/console/cli/examples.ts'
import { createProgram } from '../../../src/console/cli/program.ts'
import { WINGS } from '../../../src/wings.ts'
import { ROUTES } from '../../support/relay/routes.ts'
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

/** The files that make commands, as text. */
const COMMAND_FILES = globSync(['src/console/cli/*.ts', 'src/*/*/*.command.ts']).map((file) => readFileSync(file, 'utf8'))

/** Returns the scopes of the routes that a file asks by their addresses. */
function scopesAsked(text: string): ReadonlySet<string> {
  const asked = text.matchAll(/(?:'(GET|POST|PUT|DELETE|PATCH)',\s*)?[`'](\/(?:relay|v1)\/[^`'?]*)/g)
  return new Set(
    [...asked].flatMap(([, method = 'GET', written = '']) => {
      const path = written.replaceAll(/\$\{[^}]*\}/g, 'x')
      const route = ROUTES.find(
        (one) =>
          one.method.toUpperCase() === method &&
          new RegExp(`^${one.path.replaceAll(/:[A-Za-z]+/g, '[^/]+').replaceAll('*', '.*')}$`).test(path),
      )
      return route?.scope ?? []
    }),
  )
}

test('the help of a command names the scope of the routes that it asks', () => {
  const wrong = program.commands.flatMap((command) => {
    const name = command.name()
    const scopes = new Set(
      COMMAND_FILES.filter((text) => text.includes(`new Command('${name}')`)).flatMap((text) => [...scopesAsked(text)]),
    )
    const documented = commandsWithin(command, name).flatMap(({ command: one }) =>
      one.options.filter(({ long }) => long === '--username').map(({ description }) => description),
    )
    if (scopes.size === 0 || documented.length === 0) return []
    const named = documented.map((text) => /scope (status \(.*: admin\)|status|admin)/.exec(text)?.[1] ?? 'none')
    const isRight = scopes.has('admin') ? named.some((one) => one !== 'status') : named.every((one) => one.startsWith('status'))
    return isRight ? [] : [`${name} asks routes of ${[...scopes].join(' and ')}, and says ${named.join(', ')}`]
  })
  expect(wrong).toEqual([])
  const saidBy = (name: string) =>
    /scope [^;]*/.exec(
      program.commands
        .find((one) => one.name() === name)
        ?.helpInformation()
        .replaceAll(/\s+/g, ' ') ?? '',
    )?.[0]
  expect(['history', 'tail', 'export', 'parcels', 'inbox'].map(saidBy)).toEqual([
    'scope status (to ask the carrier about an unknown parcel: admin)',
    'scope status (deliveries: admin)',
    'scope status',
    'scope status',
    'scope admin',
  ])
})

test('--help shows what a command does, its options and its example, and exits with 0', async () => {
  const help = await runCommand(['endpoints', 'add', '--help'])
  expect(help.code).toBe(0)
  expect(help.stdout).toMatch(/^Usage: parcel-relay endpoints add \[options\] <name> <url>/)
  expect(help.stdout).toContain('RELAY_URL')
  expect(help.stdout).toMatch(/\nExample:\n {2}\$ parcel-relay endpoints add shop /)
  const stalled = await runCommand(['watchdogs', 'stalled', '--help'])
  expect([stalled.code, stalled.stdout]).toEqual([0, expect.stringContaining('--reference')])
  const stranger = { code: 2, stdout: '', stderr: expect.stringMatching(/unknown command 'stalled'[\s\S]*"parcel-relay --help" lists all/) }
  expect(await runCommand(['stalled', '--help'])).toMatchObject(stranger)
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
