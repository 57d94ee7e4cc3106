import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const PAGES = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md')]
const TESTS = globSync('test/**/*.test.ts').map((path) => readFileSync(path, 'utf8'))

/** The first lines of the blocks that need no test here, because the tests of the package, the demo and the gate run these commands. */
const WITHOUT_SESSION = ['npm ci && npm run demo', 'npm ci && npm test', 'npm ci', 'MALLOC_ARENA_MAX=2 node']
const RUN_WHOLE = ['docs/integrating.md'] // A test of its own runs all blocks of this page.

const blocks = PAGES.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(/^ *```(?:sh|bash) ?(\S*)\n(.*)$/gm)].map(([, session = '', first = '']) => ({
    page,
    session,
    first,
  })),
)

test('a test types every block of commands in the documents into a shell', () => {
  const runs = ({ page, session }: (typeof blocks)[number]) =>
    TESTS.some((text) => text.includes(`'${page}'`) && text.includes(`'${session}'`) && text.includes('documentedCommands('))
  const untried = blocks.filter(
    (block) =>
      !RUN_WHOLE.includes(block.page) &&
      !(block.session === '' ? WITHOUT_SESSION.some((line) => block.first.startsWith(line)) : runs(block)),
  )
  expect(blocks.length).toBeGreaterThan(50)
  expect(untried).toEqual([])
})
