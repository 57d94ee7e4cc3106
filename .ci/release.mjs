// Makes a release: `npm run release -- VERSION [--dry-run]`. It gives the changelog's unreleased part its version and day, sets the version, writes the documents
// that name it anew, and commits and tags that. The package and its list of components (SBOM) are in `release/` then; pushing and publishing are yours.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const [version = '', ...flags] = process.argv.slice(2)
const isDry = flags.includes('--dry-run')
const day = new Date().toISOString().slice(0, 10)

function run(command, ...args) {
  process.stdout.write(`${[command, ...args].join(' ')}\n`)
  return isDry ? '' : execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 64 * 1024 * 1024 })
}

/** Says what stands in the way of the release; null: nothing does. */
function obstacle() {
  if (!/^\d+\.\d+\.\d+$/.test(version) || flags.some((flag) => flag !== '--dry-run'))
    return 'usage: npm run release -- VERSION [--dry-run], such as 1.2.0'
  if (execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' }) !== '')
    return 'there are changes that are not committed: commit or drop them first'
  if (execFileSync('git', ['tag', '--list', `v${version}`], { encoding: 'utf8' }) !== '')
    return `the tag v${version} exists: choose the next version`
  if (!/^## \[Unreleased\]\n+(?!## )\S/m.test(changelog)) return 'CHANGELOG.md has nothing under [Unreleased]: write what has changed'
  return null
}

const changelog = readFileSync('CHANGELOG.md', 'utf8')
const problem = obstacle()
if (problem !== null) {
  process.stderr.write(`release: ${problem}\n`)
  process.exit(1)
}
process.stdout.write(`CHANGELOG.md: [Unreleased] becomes [${version}] - ${day}\n`)
if (!isDry) writeFileSync('CHANGELOG.md', changelog.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${version}] - ${day}\n`))
run('npm', 'version', version, '--no-git-tag-version', '--allow-same-version')
run('npm', 'run', 'docs')
run('npm', 'run', 'docs:types')
if (!isDry) mkdirSync('release', { recursive: true })
run('npm', 'pack', '--pack-destination', 'release')
const components = run('npm', 'sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev')
process.stdout.write(`release/parcel-relay-${version}.cdx.json: the components of the package\n`)
if (!isDry) writeFileSync(`release/parcel-relay-${version}.cdx.json`, components)
run('git', 'commit', '--all', '--message', `Release ${version}`)
run('git', 'tag', '--annotate', `v${version}`, '--message', `Version ${version}`)
process.stdout.write(
  isDry ? 'Nothing was changed.\n' : `Released as v${version}: push the commit and its tag, and publish what is in release/.\n`,
)
