import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'

const dependencies = z.record(z.string(), z.string()).default({})
const lockfile = z.object({
  packages: z.record(z.string(), z.looseObject({ dependencies, devDependencies: dependencies, optionalDependencies: dependencies })),
})
const manifest = z.object({ dependencies, devDependencies: dependencies })

const { packages } = lockfile.parse(JSON.parse(readFileSync('package-lock.json', 'utf8')))
const { '': root, ...others } = packages

/** Lists the dependencies of a package that the lock file lacks. Like Node, it searches beside the package and then in the folders above. */
function missingFrom(asking: string, names: readonly string[]): readonly string[] {
  const folders = asking.split(/(?=\/node_modules\/)/).map((_, at, parts) => parts.slice(0, at + 1).join(''))
  const places = [...folders.map((folder) => `${folder}/node_modules/`), 'node_modules/']
  return names.filter((name) => !places.some((place) => `${place}${name}` in others)).map((name) => `${asking} asks for ${name}`)
}

// If the registry lacks the package of one platform, npm leaves it out of the lock file. Then `npm ci` fails on every machine.
test('the lock file names every dependency, including those of other platforms', () => {
  const asked = Object.entries(others).flatMap(([asking, entry]) =>
    missingFrom(asking, [...Object.keys(entry.dependencies), ...Object.keys(entry.optionalDependencies)]),
  )
  expect(Object.keys(others).length).toBeGreaterThan(100)
  expect(asked).toEqual([])
  expect(missingFrom('node_modules/koa', ['co-nobody'])).toEqual(['node_modules/koa asks for co-nobody'])
})

test('every dependency has one exact version, which is the locked one', () => {
  const wanted = manifest.parse(JSON.parse(readFileSync('package.json', 'utf8')))
  for (const [name, version] of Object.entries({ ...wanted.dependencies, ...wanted.devDependencies })) {
    expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?$/)])
    expect([name, others[`node_modules/${name}`]?.version]).toEqual([name, version])
  }
  expect([root?.dependencies, root?.devDependencies]).toEqual([wanted.dependencies, wanted.devDependencies])
})
