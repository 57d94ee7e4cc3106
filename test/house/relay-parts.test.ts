import { globSync, readFileSync } from 'node:fs'
import { parseSync, type TSTypeParameterInstantiation, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'

/** The files that declare the parts of the relay, and the one that makes them all. */
const WHOLE = ['src/core/flow/relay-part.ts', 'src/core/wiring/relay.ts', 'src/app.ts']
const PARTS_MAX = 8

/** Returns, for each use of the type `Relay` in a source, how many parts it takes: a name, the members of a `Pick`, or all of them. */
function partsTaken(path: string, source: string): readonly number[] {
  const taken: number[] = []
  const counted = new Set<number>()
  const text = ({ start, end }: { readonly start: number; readonly end: number }) => source.slice(start, end)
  function take(name: string, given: TSTypeParameterInstantiation | null | undefined): void {
    const [whole, members] = given?.params ?? []
    if (name === 'Relay') taken.push(Number.POSITIVE_INFINITY)
    if (name !== 'Pick' || whole === undefined || members === undefined || text(whole) !== 'Relay') return
    counted.add(whole.start)
    taken.push(members.type === 'TSUnionType' ? members.types.length : 1)
  }
  new Visitor({
    TSIndexedAccessType: ({ objectType }) => void counted.add(objectType.start),
    TSTypeReference({ typeName, typeArguments, start }) {
      if (!counted.has(start)) take(text(typeName), typeArguments)
    },
    TSInterfaceHeritage: ({ expression, typeArguments }) => take(text(expression), typeArguments),
  }).visit(parseSync(path, source).program)
  return taken
}

test(`no pick of the relay's parts has over ${PARTS_MAX} members; only app.ts takes them all`, () => {
  const uses = globSync('src/**/*.ts').flatMap((path) => partsTaken(path, readFileSync(path, 'utf8')).map((parts) => ({ path, parts })))
  expect(uses.length).toBeGreaterThan(20)
  expect(uses.filter(({ path, parts }) => parts > PARTS_MAX && !WHOLE.includes(path))).toEqual([])
})

test('a factory that takes too many parts of the relay is found', () => {
  expect(partsTaken('x.ts', "const f = ({ a, b }: Pick<Relay, 'a' | 'b'>) => [a, b]")).toEqual([2])
  expect(partsTaken('x.ts', "interface A extends B, Pick<Relay, 'a' | 'b' | 'c'> {}")).toEqual([3])
  expect(partsTaken('x.ts', "const f = (a: Relay['a']) => a")).toEqual([])
  expect(partsTaken('x.ts', 'const f = (relay: Relay) => relay')).toEqual([Number.POSITIVE_INFINITY])
  expect(partsTaken('x.ts', "type A = Omit<Relay, 'a'>")).toEqual([Number.POSITIVE_INFINITY])
  expect(partsTaken('x.ts', 'interface A extends Relay {}')).toEqual([Number.POSITIVE_INFINITY])
})
