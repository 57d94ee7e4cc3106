import { createHash } from 'node:crypto'
import type { RawMembers } from '../json-body.ts'
import { compareBytes, greatestText } from '../text.ts'
import type { Entry } from './history.ts'
import type { PollObservation } from './observation.ts'
import type { AnswerSource } from './pull-response.ts'

/** A stored answer to a poll, without its sightings. Answers in the same language with equal bytes are stored once, with the latest `askedAtMs`. */
export interface KeptAnswer {
  readonly language: string
  readonly askedAtMs: number
  /** SHA-256 of the body in hexadecimal. Where DOMAIN 3.1 says that the greatest bytes decide, the greatest digest does. */
  readonly digest: string
  readonly entryCount: number
  /** Whether items were skipped. Then the answer decides neither how often an entry occurs nor the order of entries (DOMAIN 6.7). */
  readonly flawed: boolean
  readonly trackingIds: readonly string[]
  readonly distributionType: string | null
  readonly extra: RawMembers
}

export function keptAnswer(poll: PollObservation): KeptAnswer {
  const { language, askedAtMs, trackingIds, distributionType, extra } = poll
  const digest = createHash('sha256').update(poll.body).digest('hex')
  return { language, askedAtMs, digest, entryCount: poll.sightings.length, flawed: poll.skipped > 0, trackingIds, distributionType, extra }
}

/** The last-asked answer comes first. */
function compareLastAskedAnswer(a: KeptAnswer, b: KeptAnswer): number {
  return b.askedAtMs - a.askedAtMs || compareBytes(b.digest, a.digest) || compareBytes(b.language, a.language)
}

/**
 * Returns the answer that decides the order of entries at equal instants: the one with more entries, else the last-asked one, else the one
 * with the greatest digest (DOMAIN 3.1). Null: both are missing or flawed.
 */
export function betterOrderAnswer<A extends KeptAnswer>(a: A | null, b: A | null): A | null {
  const [first, second] = [a, b].filter((answer) => answer !== null && !answer.flawed)
  if (first === undefined || first === null) return null
  if (second === undefined || second === null) return first
  return (second.entryCount - first.entryCount || compareLastAskedAnswer(first, second)) <= 0 ? first : second
}

/** How many of the last-asked answers are kept for each parcel and language. Older answers are kept only if they decide something. */
export const ANSWERS_MAX = 8

export interface KeptAnswers {
  readonly kept: readonly KeptAnswer[]
  /** Decides the order of entries at equal instants; null: no answer does. */
  readonly order: KeptAnswer | null
}

/**
 * Selects the answers to keep: the answer that decides the order, and in each language the last-asked answers and the last answer with a
 * distribution type. The other answers do not influence what is served, so they can be dropped at any time.
 */
export function keepAnswers(all: readonly KeptAnswer[]): KeptAnswers {
  const answers = [
    ...new Map(
      all
        .toSorted(compareLastAskedAnswer)
        .toReversed()
        .map((answer) => [answerId(answer), answer]),
    ).values(),
  ]
  const order = answers.reduce<KeptAnswer | null>(betterOrderAnswer, null)
  const lasting = new Set<KeptAnswer | null | undefined>([order])
  for (const inLanguage of Map.groupBy(answers.toSorted(compareLastAskedAnswer), ({ language }) => language).values()) {
    for (const answer of inLanguage.slice(0, ANSWERS_MAX)) lasting.add(answer)
    lasting.add(inLanguage.find(({ distributionType }) => distributionType !== null))
  }
  return { kept: answers.filter((answer) => lasting.has(answer)), order }
}

/** Answers in the same language with equal bytes have the same id. */
export function answerId({ language, digest }: Pick<KeptAnswer, 'language' | 'digest'>): string {
  return `${language}/${digest}`
}

/** Chooses the values that belong to the parcel and not to an entry (DOMAIN 2.5): from the last-asked poll that has them, else from pushes. */
export function presentParcel(entries: readonly Entry[], answers: readonly KeptAnswer[], trackingIds: readonly string[]): AnswerSource {
  const lastAsked = answers.toSorted(compareLastAskedAnswer)
  const polled = lastAsked.find((answer) => answer.distributionType !== null)?.distributionType
  const pushed = entries.flatMap((entry) => entry.members.flatMap((kept) => kept.sighting.distributionType ?? []))
  const listed = lastAsked[0]?.trackingIds ?? []
  const others = trackingIds.filter((id) => !listed.includes(id)).sort(compareBytes)
  return {
    entries,
    trackingIds: [...listed, ...others],
    distributionType: polled ?? greatestText(pushed) ?? '',
    extra: lastAsked[0]?.extra ?? [],
  }
}
