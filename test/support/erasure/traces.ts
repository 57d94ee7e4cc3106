import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { INTERNAL_ROUTES } from '../relay/routes.ts'
import { textsOfTables } from '../store/all-rows.ts'

/** What people, labels and mistakes put between the characters of a number. */
const BETWEEN = String.raw`[\s\-\u00a0\u00ad]{0,2}`

/** Returns a search for identifiers, however they are spaced, in any case, in UTF-16, or with escaped characters. */
export function searchForNames(names: readonly string[]): (text: string) => readonly string[] {
  const found = names.map((name) => [name, new RegExp([...name].join(BETWEEN), 'i')] as const)
  return (given) => {
    const forms = [
      given,
      given.replaceAll('\0', ''),
      given.replaceAll(/\\u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
    ]
    return found.flatMap(([name, pattern]) => (forms.some((form) => pattern.test(form)) ? [name] : []))
  }
}

type Search = ReturnType<typeof searchForNames>

/** Returns the tables of a store that hold a name, in any column. */
export async function tablesWith(search: Search, place: string): Promise<readonly string[]> {
  const found: string[] = []
  for await (const [table, text] of textsOfTables(place)) if (search(text).length > 0) found.push(table)
  return found
}

/** Returns the files in the folder of an SQLite store whose bytes hold a name. */
export function filesWith(search: Search, place: string): readonly string[] {
  if (place.startsWith('postgres://')) return []
  const folder = dirname(place)
  const files = readdirSync(folder).filter((name) => name.startsWith(basename(place)) && statSync(join(folder, name)).isFile())
  return files.filter((name) => search(readFileSync(join(folder, name)).toString('latin1')).length > 0).sort()
}

/** The lists whose members have an address of their own: the path, and how an answer names a member. */
const LISTS: readonly (readonly [path: string, id: RegExp])[] = [
  ['/relay/endpoints', /"id":"(\d+)"/g],
  ['/relay/deliveries', /"id":"(\d+)"/g],
  ['/relay/inbox', /"id":"(\d+)"/g],
  ['/relay/jobs', /"id":"(\d+)"/g],
]
/** What must be asked for with parameters. */
const WITH_QUERY: Readonly<Record<string, string>> = { '/relay/tallies': 'kind=pushes', '/relay/events': 'after=0&limit=500' }
/** These answer the same at every relay. */
const FIXED = ['/openapi.json', '/docs', '/healthz']

/** Returns the addresses of the internal API whose answers hold a name. */
export async function answersWith(search: Search, ask: (path: string) => Promise<string>): Promise<readonly string[]> {
  const paths = INTERNAL_ROUTES.flatMap(({ method, path }) =>
    method !== 'get' || path.includes(':') || path.includes('*') || FIXED.includes(path) ? [] : [path],
  )
  const found: string[] = []
  const look = async (path: string): Promise<string> => {
    const text = await ask(path)
    if (search(text).length > 0) found.push(path)
    return text
  }
  for (const path of paths) {
    const query = WITH_QUERY[path]
    const text = await look(query === undefined ? path : `${path}?${query}`)
    const [, id] = LISTS.find(([list]) => list === path) ?? []
    if (id !== undefined) for (const [, member] of text.matchAll(id)) await look(`${path}/${member}`)
  }
  return found
}
