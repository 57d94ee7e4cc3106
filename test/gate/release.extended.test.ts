import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { temporaryFolder } from '../support/runner/temporary.ts'

/** Makes a repository with a changelog, in which a release can be tried. */
function repositoryWith(changelog: string): string {
  const folder = temporaryFolder()
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args], { cwd: folder })
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  writeFileSync(join(folder, 'package.json'), '{ "name": "parcel-relay", "version": "0.1.0" }\n')
  git('init', '--quiet')
  git('add', '--all')
  git('commit', '--quiet', '--message', 'Begin')
  git('tag', 'v0.1.0')
  return folder
}

function release(folder: string, ...args: readonly string[]) {
  // Without this, a compile cache with a relative path would be written into the repository, as an open change.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' }
  const { stdout, stderr, status } = spawnSync(process.execPath, [resolve('.ci/release.mjs'), ...args], {
    cwd: folder,
    env,
    encoding: 'utf8',
  })
  return { stdout, stderr, status }
}

const CHANGED = '# Changelog\n\n## [Unreleased]\n\n- It does more.\n'

test('a dry run of a release shows each step and the list of components, and changes nothing', () => {
  const folder = repositoryWith(CHANGED)
  const { stdout, status } = release(folder, '0.2.0', '--dry-run')
  expect(status).toBe(0)
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^CHANGELOG\.md: \[Unreleased\] becomes \[0\.2\.0\] - \d{4}-\d\d-\d\d$/),
    'npm version 0.2.0 --no-git-tag-version --allow-same-version',
    'npm run docs',
    'npm run docs:types',
    'npm pack --pack-destination release',
    'npm sbom --sbom-format cyclonedx --omit dev',
    'release/parcel-relay-0.2.0.cdx.json: the components of the package',
    'git commit --all --message Release 0.2.0',
    'git tag --annotate v0.2.0 --message Version 0.2.0',
    'Nothing was changed.',
    '',
  ])
  expect(readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')).toBe(CHANGED)
  expect(execFileSync('git', ['tag', '--list'], { cwd: folder, encoding: 'utf8' })).toBe('v0.1.0\n')
})

test('a release without a new version, without news or with open changes is refused', () => {
  const folder = repositoryWith(CHANGED)
  expect(release(folder)).toMatchObject({ status: 1, stderr: expect.stringContaining('usage: npm run release') })
  expect(release(folder, '0.1.0')).toMatchObject({ status: 1, stderr: expect.stringContaining('the tag v0.1.0 exists') })
  expect(release(repositoryWith('## [Unreleased]\n\n## [0.1.0]\n'), '0.2.0')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('nothing under [Unreleased]'),
  })
  writeFileSync(join(folder, 'open'), '')
  expect(release(folder, '0.2.0')).toMatchObject({ status: 1, stderr: expect.stringContaining('not committed') })
})

test('the list of components has the package’s dependencies, and not those of tests', () => {
  const sbom = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev'], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  const { components } = z.object({ components: z.array(z.object({ name: z.string() })) }).parse(JSON.parse(sbom))
  const names = components.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['koa', 'undici', 'better-sqlite3']))
  expect(names).not.toContain('vitest')
})

test('the package contains no operator’s config', () => {
  const manifest = z.object({ files: z.array(z.string()) }).parse(JSON.parse(readFileSync('package.json', 'utf8')))
  expect(manifest.files).toEqual(expect.arrayContaining(['config', '!config/relay.yaml']))
})
