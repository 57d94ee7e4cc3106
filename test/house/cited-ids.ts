/** A row of `docs/faults.md` (`I5`) or a rule of `docs/domain.md` (`2.4`) that a file cites. */
export interface Citation {
  readonly id: string
  readonly path: string
}

/** Matches a text that begins with codes and a colon, as the title of a test does: `I5, 4.3: a fact`. */
const TITLE = /['"`](?:\$\{\w+\}, )?((?:[A-Z]\d{1,2}|\d\.\d)(?:, (?:[A-Z]\d{1,2}|\d\.\d))*): /g
const WITHOUT_TEST = '## Rows without a test'

/** Returns the codes at the beginning of a file's test titles, and then the rules that its comments name. */
export function citedIn(source: string, path: string): readonly Citation[] {
  const titles = [...source.matchAll(TITLE)].flatMap(([, codes = '']) => codes.split(', '))
  const rules = [...source.matchAll(/\bDOMAIN (\d\.\d(?:(?:, | and )\d\.\d)*)/g)].flatMap(([, list = '']) => list.match(/\d\.\d/g) ?? [])
  return [...titles, ...rules].map((id) => ({ id, path }))
}

export function documentedRows(page: string): readonly string[] {
  return idsOf(page.split(WITHOUT_TEST)[0] ?? '')
}

export function excusedRows(page: string): ReadonlySet<string> {
  return new Set(idsOf(page.split(WITHOUT_TEST)[1] ?? ''))
}

function idsOf(table: string): readonly string[] {
  return [...table.matchAll(/^\| ([A-Z]\d{1,2}) \|/gm)].map(([, id = '']) => id)
}

export function rulesOf(page: string): readonly string[] {
  return [...page.matchAll(/^\*\*(\d\.\d)\*\* /gm)].map(([, id = '']) => id)
}
