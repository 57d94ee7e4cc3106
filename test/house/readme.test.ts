import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const readme = readFileSync('README.md', 'utf8')
const named = (pattern: RegExp) => [...new Set([...readme.matchAll(pattern)].map(([, name = '']) => name))]

test('every file and folder the README names is there', () => {
  const paths = named(/`((?:src|test|config)\/[^`\s*]*|\.ci\/[^`\s]*)`/g).filter((path) => path !== 'config/relay.yaml')
  expect(paths.length).toBeGreaterThan(30)
  expect(paths.filter((path) => !existsSync(path))).toEqual([])
})

test('every metric the README names is one', () => {
  const source = readFileSync('src/ops/metrics.ts', 'utf8')
  const metrics = named(/\b(relay_[a-z_]+)\b/g)
  expect(metrics.length).toBeGreaterThan(10)
  expect(metrics.filter((metric) => !source.includes(`'${metric}'`))).toEqual([])
})

test('the README lists every command there is, and no other', () => {
  const help = spawnSync(process.execPath, ['src/main.ts', '--help'], { encoding: 'utf8' }).stdout
  const known = [...help.matchAll(/^ {2}([a-z][a-z-]*)(?= )/gm)].map(([, name = '']) => name).filter((name) => name !== 'help')
  const section = readme.split('## Commands')[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  const listed = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([a-z-]+)/g)].map(([, name = '']) => name))
  expect(known.length).toBeGreaterThan(4)
  expect([...new Set(listed)].sort()).toEqual(known.sort())
})

test('every script the README runs is in package.json', () => {
  const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const script of named(/npm run (?:-s )?([a-z:]+)/g)) expect(manifest).toHaveProperty(['scripts', script])
})
