import type { PageRoute } from './page-route.ts'

export interface FoundPage {
  readonly route: PageRoute
  /** The path below the prefix of the portal, as it stands in an address. */
  readonly path: string
  readonly param: (name: string) => string
}

/** Finds routes by paths, which may have been received: only a path of a route is found. */
export interface PageTable {
  readonly find: (method: PageRoute['method'], path: string) => FoundPage | null
  /** Finds the page with the form that is sent to `path`: the page at the same path, or at the path without its last parts. */
  readonly pageOfForm: (path: string) => FoundPage | null
}

/** The characters of a part of a path. */
const PART = "([\\w.~%!$&'()*+,;=:@-]+)"

export function createPageTable(routes: readonly PageRoute[]): PageTable {
  const rows = routes.map((route) => ({ route, pattern: new RegExp(`^${route.path.replaceAll(/:\w+/g, PART)}$`) }))

  function find(method: PageRoute['method'], path: string): FoundPage | null {
    for (const { route, pattern } of rows) {
      const values = route.method === method ? pattern.exec(path)?.slice(1) : undefined
      if (values === undefined) continue
      const names = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name)
      return { route, path, param: (name) => decoded(values[names.indexOf(name)] ?? '') }
    }
    return null
  }

  return {
    find,
    pageOfForm(path) {
      for (let at = path; at !== ''; at = at.replace(/\/[^/]*$/, '')) {
        const found = find('get', at)
        if (found !== null) return found
      }
      return null
    },
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
