import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'

/** A reference from one module to another: `import`, `export ... from`, `import()` or the type `import('x')`. */
export interface ImportSite {
  /** The text of the specifier, or null if it is computed and so unknown. */
  readonly specifier: string | null
  readonly line: number
  /** Whether it imports types only, so that nothing is loaded. */
  readonly isOfTypes: boolean
}

/** Something other than an import that a house rule forbids or restricts. */
export interface Finding {
  readonly kind: 're-export' | 'environment' | 'clock' | 'syntax'
  readonly line: number
}

export interface SourceModule {
  /** Relative to the folder of the sources, with `/`. */
  readonly path: string
  readonly imports: readonly ImportSite[]
  readonly findings: readonly Finding[]
}

export function readModules(folder: string): readonly SourceModule[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.[cm]?tsx?$/.test(path))
    .sort()
    .map((path) => parseModule(path.replaceAll('\\', '/'), readFileSync(join(folder, path), 'utf8')))
}

/** Uses a parser, because a regular expression would miss imports over several lines, and find some inside strings. */
export function parseModule(path: string, source: string): SourceModule {
  const { module, program, errors } = parseSync(path, source)
  const lineAt = (offset: number) => source.slice(0, offset).split('\n').length
  const imports: ImportSite[] = module.staticImports.map(({ moduleRequest, start, entries }) => ({
    specifier: moduleRequest.value,
    line: lineAt(start),
    isOfTypes: entries.length > 0 && entries.every(({ isType }) => isType),
  }))
  const findings: Finding[] = errors.map(() => ({ kind: 'syntax', line: 1 }))
  const find = (kind: Finding['kind'], { start }: { readonly start: number }) => void findings.push({ kind, line: lineAt(start) })

  // For an imported `a`, the parser reports `export { a }` as a re-export at the place of the import, which is listed already.
  for (const statement of module.staticExports) {
    const requests = new Set(statement.entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []))
    if (requests.size > 0) find('re-export', statement)
    if (module.staticImports.some(({ start }) => start === statement.start)) continue
    for (const specifier of requests) imports.push({ specifier, line: lineAt(statement.start), isOfTypes: false })
  }

  new Visitor({
    ImportExpression: (node) => void imports.push({ specifier: textOf(node.source), line: lineAt(node.start), isOfTypes: false }),
    TSImportType: (node) => void imports.push({ specifier: textOf(node.source), line: lineAt(node.start), isOfTypes: true }),
    TSImportEqualsDeclaration: (node) => find('syntax', node),
    MemberExpression(node) {
      const property = node.computed ? textOf(node.property) : nameOf(node.property)
      const owner = nameOf(node.object)
      if ((owner === 'process' && property === 'env') || (owner === 'globalThis' && property === 'process')) find('environment', node)
      if (CLOCKS.has(`${owner}.${property}`)) find('clock', node)
    },
    VariableDeclarator(node) {
      if (nameOf(node.init) === 'process') find('environment', node)
    },
    NewExpression(node) {
      if (nameOf(node.callee) === 'Date' && node.arguments.length === 0) find('clock', node)
    },
    CallExpression(node) {
      if (TIMERS.has(nameOf(node.callee) ?? '')) find('clock', node)
    },
  }).visit(program)
  return { path, imports, findings }
}

const CLOCKS = new Set(['Date.now', 'performance.now', 'Math.random', 'crypto.randomUUID', 'crypto.getRandomValues', 'process.hrtime'])
const TIMERS = new Set(['setTimeout', 'setInterval', 'setImmediate', 'randomUUID', 'randomBytes', 'randomInt', 'fetch'])

interface Node {
  readonly type: string
  readonly name?: unknown
  readonly value?: unknown
}

function nameOf(node: Node | null): string | null {
  return node?.type === 'Identifier' && typeof node.name === 'string' ? node.name : null
}

function textOf(node: Node): string | null {
  return node.type === 'Literal' && typeof node.value === 'string' ? node.value : null
}
