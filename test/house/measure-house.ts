import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import { readModules } from './source-module.ts'

export interface Measured {
  /** Lines. */
  readonly size: number
  /** `path:line`, or a path. */
  readonly place: string
}

/** How large the house is: everything that `HOUSE_LIMITS` bounds. */
export interface HouseFigures {
  /** The longest first. */
  readonly functions: readonly Measured[]
  /** The largest first. */
  readonly files: readonly Measured[]
  /** Lines of the ports of each capability, and of those that all share. */
  readonly ports: readonly Measured[]
  /** Imports from one capability's flows to another's: `from -> to`. */
  readonly crossings: readonly string[]
  /** Files that a pushed body passes before its 200, as docs/architecture.md lists them. */
  readonly pushPath: readonly string[]
  /** Those of them that are no file of the sources. */
  readonly pushPathUnknown: readonly string[]
  readonly readmeWords: number
}

const LONG_FUNCTION = 60
const CAPABILITIES = ['ingest', 'history', 'polling', 'delivery', 'admin']

/** `root`: the folder of the project. */
export function measureHouse(root: string): HouseFigures {
  const sources = join(root, 'src')
  const paths = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => path.replaceAll('\\', '/'))
  const texts = new Map(paths.map((path) => [path, readFileSync(join(sources, path), 'utf8')]))
  const files = [...texts].map(([place, text]): Measured => ({ size: linesOf(text), place })).sort(largestFirst)
  const pushPath = listedPushPath(readFileSync(join(root, 'docs/architecture.md'), 'utf8'))
  return {
    functions: [...texts].flatMap(([path, text]) => functionsOf(path, text)).sort(largestFirst),
    files,
    ports: files.filter(({ place }) => /^flow\/(?:\w+\/)?ports\.ts$/.test(place)),
    crossings: crossingsOf(sources),
    pushPath,
    pushPathUnknown: pushPath.filter((name) => !paths.some((path) => `/${path}`.endsWith(`/${name}.ts`))),
    readmeWords: readFileSync(join(root, 'README.md'), 'utf8').split(/\s+/).length,
  }
}

export function longFunctions({ functions }: HouseFigures): readonly Measured[] {
  return functions.filter(({ size }) => size > LONG_FUNCTION)
}

/** Of all functions, those that are over 60 lines: 0 to 1. */
export function shareOfLong(figures: HouseFigures): number {
  return longFunctions(figures).length / Math.max(1, figures.functions.length)
}

/** The lines of every function with a body, arrow functions and methods included. */
export function functionsOf(path: string, source: string): readonly Measured[] {
  const found: Measured[] = []
  const lineAt = (offset: number) => linesOf(source.slice(0, offset)) + 1
  const add = ({ start, end, body }: { readonly start: number; readonly end: number; readonly body?: unknown }) => {
    if (body === null || body === undefined) return
    found.push({ size: lineAt(end) - lineAt(start) + 1, place: `${path}:${lineAt(start)}` })
  }
  new Visitor({ FunctionDeclaration: add, FunctionExpression: add, ArrowFunctionExpression: add }).visit(parseSync(path, source).program)
  return found
}

function crossingsOf(sources: string): readonly string[] {
  return readModules(join(sources, 'flow')).flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier }) => {
      const target = specifier?.startsWith('.') ? posix.join(posix.dirname(path), specifier) : ''
      const [from = '', to = ''] = [path.split('/')[0], target.split('/')[0]]
      return from !== to && CAPABILITIES.includes(from) && CAPABILITIES.includes(to) ? [`${path} -> ${target}`] : []
    }),
  )
}

/** The names in the paragraph that lists them. */
export function listedPushPath(page: string): readonly string[] {
  const [paragraph = ''] = page.match(/^Files it passes before its 200(?:.|\n)*?(?=\n\n)/m) ?? []
  return [...paragraph.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

function linesOf(text: string): number {
  return text.split('\n').length - 1
}

function largestFirst(a: Measured, b: Measured): number {
  return b.size - a.size
}
