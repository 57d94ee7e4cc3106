import { execFile } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { minimal } from '../console/cli/config-cases.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const run = promisify(execFile)
const TIMEOUT_MS = 3_600_000
const COPIED = ['src', 'test', 'bench', 'docs', 'config', 'ops', 'package.json', 'tsconfig.json', 'vitest.config.ts', 'rolldown.config.ts']

const TABLE = readFileSync('src/wings.ts', 'utf8')
/** What each folder of a wing offers, as its lines of the table. */
const ALL_OFFERS = (TABLE.match(/^ {2}\{\n[\s\S]*?^ {2}\},\n|^ {2}\{ .* \},\n/gm) ?? []).flatMap((lines) => {
  const [, wing, folder] = /'\.\/(\w+)\/([\w-]+)\//.exec(lines) ?? []
  return wing === undefined || folder === undefined ? [] : [{ wing, folder, lines }]
})
const OFFERS = ALL_OFFERS.filter(({ wing }) => wing === 'upkeep')
const WATCHDOGS = ALL_OFFERS.filter(({ folder }) => folder === 'watchdogs')

/** A copy of the tree, in which the lines of some folders can be taken out of the table of wings. */
function copyOfTree() {
  const tree = temporaryFolder()
  for (const path of COPIED) cpSync(path, join(tree, path), { recursive: true })
  symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
  writeFileSync(join(tree, 'sources.json'), JSON.stringify({ extends: './tsconfig.json', include: ['src'] }))
  return {
    remove(offers: typeof OFFERS): void {
      const left = offers.reduce((table, { lines }) => table.replace(lines, ''), TABLE)
      expect(left.length).toBe(TABLE.length - offers.reduce((sum, { lines }) => sum + lines.length, 0))
      writeFileSync(join(tree, 'src/wings.ts'), left)
    },
    /** Resolves with what a program of `node_modules` prints, whether it fails or not. */
    async npx(program: string, ...args: readonly string[]): Promise<string> {
      const options = { cwd: tree, maxBuffer: 2 ** 26, timeout: TIMEOUT_MS }
      const path = program === 'node' ? process.execPath : join('node_modules/.bin', program)
      return await run(path, args, options).then(
        ({ stdout }) => stdout,
        ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }) => `failed: ${stdout}${stderr}`,
      )
    },
  }
}

const PATHS =
  "const { loadRoutes } = await import('./src/assembly/internal-listener.ts'); console.log((await loadRoutes()).internal.map(({ path }) => path).join('\\n'))"

/** A command and a route of each folder; null: it has none. */
const OWN: Readonly<Record<string, readonly [command: string | null, route: string | null]>> = {
  check: ['check', '/relay/check'],
  erasure: ['forget', '/relay/parcels/forget'],
  refusals: ['verify', '/relay/refusals'],
  inbox: ['inbox', '/relay/inbox'],
  replay: ['replay', '/relay/endpoints/:id/replay'],
  jobs: [null, '/relay/jobs'],
  rebuild: ['rebuild', '/relay/rebuild'],
  moving: ['move-store', '/relay/store/move'],
  backups: ['backup', '/relay/backups'],
  restore: ['restore', null],
  retention: ['prune', '/relay/retention'],
}

test('the sources compile without the line of any folder of upkeep, and its command and routes are gone', {
  timeout: TIMEOUT_MS,
}, async () => {
  expect(OFFERS.map(({ folder }) => folder).toSorted()).toEqual(Object.keys(OWN).toSorted())
  const tree = copyOfTree()
  const all = (await tree.npx('node', '--input-type=module', '--eval', PATHS)).split('\n')
  for (const offer of OFFERS) {
    tree.remove([offer])
    expect(await tree.npx('tsc', '--noEmit', '--incremental', '--tsBuildInfoFile', 'types.json', '-p', 'sources.json')).toBe('')
    const [command, route] = OWN[offer.folder] ?? [null, null]
    if (command !== null) expect(await tree.npx('node', 'src/main.ts', command)).toContain(`unknown command '${command}'`)
    if (route === null) continue
    expect(all).toContain(route)
    expect((await tree.npx('node', '--input-type=module', '--eval', PATHS)).split('\n')).not.toContain(route)
  }
})

/** What folders offer as their section of the config: its name, and the section as somebody writes it. */
const SECTIONS: Readonly<Record<string, readonly [name: string, written: string]>> = {
  backups: ['backup', 'backup: { keep: 3 }'],
  watchdogs: ['watchdogs', 'watchdogs: []'],
}

test('without the line of its folder, a section is not a known key of the config, and a config needs none', {
  timeout: TIMEOUT_MS,
}, async () => {
  const offering = ALL_OFFERS.filter(({ lines }) => lines.includes('section: '))
  expect(offering.map(({ folder }) => folder)).toEqual(Object.keys(SECTIONS))
  const [tree, file] = [copyOfTree(), join(temporaryFolder(), 'relay.yaml')]
  const print = (text: string) => {
    writeFileSync(file, text)
    return tree.npx('node', 'src/main.ts', 'config', 'print', '--config', file)
  }
  for (const offer of offering) {
    const [name = '', written = ''] = SECTIONS[offer.folder] ?? []
    tree.remove([])
    expect(await print(`${minimal}${written}\n`)).toContain(`\n${name}:`)
    tree.remove([offer])
    expect(await print(`${minimal}${written}\n`)).toContain(`${name}: is not a known key`)
    expect(await print(minimal)).not.toMatch(new RegExp(`failed|^${name}:`, 'm'))
  }
})

test('the core receives, answers, polls and delivers without any folder of upkeep, and without watchdogs', {
  timeout: TIMEOUT_MS,
}, async () => {
  const tree = copyOfTree()
  tree.remove([...OFFERS, ...WATCHDOGS])
  const tests = ['relaying', 'feed', 'watching.extended', 'spent-budget'].map((name) => `test/e2e/${name}.test.ts`)
  const said = await tree.npx('vitest', 'run', '--project', 'process', '--project', 'extended', '--maxWorkers=1', ...tests)
  expect(stripVTControlCharacters(said)).toMatch(/Test Files +4 passed \(4\)/)
})
