import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from 'playwright-core'
import { afterAll } from 'vitest'

const CACHE = resolve('node_modules', '.cache')
/** The browser is unpacked to this folder once for all runs. */
const UNPACKED = join(CACHE, 'chromium')
const FONTS_FILE = 'fonts.conf'

/** Unpacks the browser of `@sparticuz/chromium`, with the libraries that a fresh machine lacks. */
async function unpack(): Promise<void> {
  if (existsSync(UNPACKED)) return
  // The package unpacks the libraries only if it believes that it runs on AWS Lambda, and unpacks everything to the temporary folder.
  process.env.AWS_EXECUTION_ENV = 'AWS_Lambda_nodejs24.x'
  const before = process.env.TMPDIR
  mkdirSync(CACHE, { recursive: true })
  const folder = mkdtempSync(join(CACHE, 'unpacking-'))
  process.env.TMPDIR = folder
  try {
    const { default: chromium } = await import('@sparticuz/chromium')
    await chromium.executablePath()
    // The package's own file looks for its fonts in folders of AWS Lambda. Without any font the browser crashes at its first page.
    writeFileSync(
      join(folder, FONTS_FILE),
      `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${join(UNPACKED, 'fonts')}</dir><cachedir>${join(UNPACKED, 'fonts-cache')}</cachedir></fontconfig>`,
    )
    // Another worker may have unpacked it meanwhile.
    if (!existsSync(UNPACKED)) renameSync(folder, UNPACKED)
  } finally {
    rmSync(folder, { recursive: true, force: true })
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

/** How long a page may hang. The time is long, because a machine may be several times slower than usual. */
const TIMEOUT_MS = 120_000

let started: Promise<Browser> | null = null

/** Starts a browser, which the caller must close. */
export async function startBrowser(): Promise<Browser> {
  await unpack()
  return await playwright.launch({
    executablePath: join(UNPACKED, 'chromium'),
    // Root in a container has no sandbox. The package's own arguments would run everything in one process, which crashes at its first page.
    args: ['--no-sandbox'],
    env: { ...process.env, LD_LIBRARY_PATH: join(UNPACKED, 'al2023', 'lib'), FONTCONFIG_FILE: join(UNPACKED, FONTS_FILE) },
  })
}

/**
 * Provides a browser for the tests of a file. It starts with the first page and ends after the last test. Returns a function that opens a page
 * with cookies of its own.
 */
export function browserOfFile(): (options?: BrowserContextOptions) => Promise<Page> {
  afterAll(async () => {
    await (await started)?.close()
    started = null
  })
  return async (options = {}) => {
    started ??= startBrowser()
    const context = await (await started).newContext(options)
    context.setDefaultTimeout(TIMEOUT_MS)
    return await context.newPage()
  }
}
