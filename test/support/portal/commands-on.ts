import { globSync, readFileSync } from 'node:fs'

/** Texts that a page shows as they were received, typed or sent, and links and buttons, whose words lead somewhere. */
const LED =
  /<(a|button|pre|textarea|option|q|title)\b[^>]*>.*?<\/\1>|<span class="(?:answer|said)">.*?<\/span>|<code class="command">.*?<\/code>/gs

/** Lists the commands and the requests of the API that a page shows without leading anywhere. */
export function commandsOn(page: string): readonly string[] {
  const text = page.replaceAll(LED, ' ').replaceAll(/<[^>]*>/g, '')
  return [...text.matchAll(/parcel-relay [a-z][\w -]*|(?:GET|POST|PUT|PATCH|DELETE) \/relay\/\S*/g)].map(([found]) => found.trim())
}

/** Commands that no page of the portal does. They need a file or a key of the machine, or the relay to be stopped. */
export const WITHOUT_PAGE =
  /^parcel-relay (?:fingerprint|verify|generate-key|hash-password|restore|move-store|prune --compact|secrets give-up-tombstones|inbox --refresh|refresh --all)\b/

/** Rooms whose words no page shows. */
const WITHOUT_MESSAGES =
  /^src\/(?:[^/]+$|trial\/|console\/(?:api|cli|document)\/|core\/(?:carrier|config|http|ops|outbound|runtime)\/)|\.(?:command|routes)\.ts$/

/** The messages in the sources of what a page may show: problems, concerns, checks, events, mistakes, results, hints. Without comments. */
export function messagesInSource(): readonly string[] {
  const files = globSync('src/**/*.ts').filter((file) => !WITHOUT_MESSAGES.test(file))
  return (
    files
      .filter((file) => !file.endsWith('/command-links.ts'))
      .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
      // What the fingerprint of a key is taken of is no command.
      .filter((line) => !/^\s*(?:\/\/|\/?\*)|'parcel-relay key fingerprint'/.test(line))
      .map((line) => line.replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, 'shop').replaceAll(/<[^>]*>/g, ' '))
      .filter((line) => /parcel-relay [a-z]|(?:GET|POST|PUT|PATCH|DELETE) \/relay\//.test(line))
  )
}
