import { createHash } from 'node:crypto'
import type { RawMembers } from '../json-body.ts'
import { compareBytes, greatestText } from '../text.ts'
import type { Entry } from './history.ts'
import type { PollObservation } from './observation.ts'
import type { AnswerSource } from './pull-response.ts'

/**
 * A polled answer that is kept, without its sightings. Answers in one language with equal bytes count as one, with the latest `askedAtMs`.
 */
export interface KeptAnswer {
  readonly language: string
  readonly askedAtMs: number
  /** SHA-256 of the body in hexadecimal. Where the rule says that the greatest bytes decide, this is compared. */
  readonly digest: string
  readonly entryCount: number
  /** Whether items were skipped. Then the answer decides neither multiplicity nor order (DOMAIN 6.7). */
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

/** Orders answers, the last-asked first. Answers asked at the same time are ordered by digest, then by language. */
function compareLastAskedAnswer(a: KeptAnswer, b: KeptAnswer): number {
  return b.askedAtMs - a.askedAtMs || compareBytes(b.digest, a.digest) || compareBytes(b.language, a.language)
}

/**
 * The one of two answers that decides the order at equal instants: the one with more entries, then the last-asked, then the greatest
 * (DOMAIN 3.1). Null: both are missing or flawed.
 */
export function betterOrderAnswer<A extends KeptAnswer>(a: A | null, b: A | null): A | null {
  const [first, second] = [a, b].filter((answer) => answer !== null && !answer.flawed)
  if (first === undefined || first === null) return null
  if (second === undefined || second === null) return first
  return (second.entryCount - first.entryCount || compareLastAskedAnswer(first, second)) <= 0 ? first : second
}

/** How many of the last-asked answers are kept per parcel and language. */
export const ANSWERS_MAX = 8

/** The answers to keep of a parcel. */
export interface KeptAnswers {
  readonly kept: readonly KeptAnswer[]
  /** The one of them that decides the order; null: none does. */
  readonly order: KeptAnswer | null
}

/**
 * Selects the answers to keep: the one that decides the order, and in each language the last-asked ones and the last one that names a
 * distribution type. No other answer changes what is served, so it does not matter when it is dropped.
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

/** Identifies an answer. Two answers in one language with equal bytes are the same. */
export function answerId({ language, digest }: Pick<KeptAnswer, 'language' | 'digest'>): string {
  return `${language}/${digest}`
}

/** The values of a parcel as a whole (DOMAIN 2.5): from the last-asked poll that gives them, otherwise from the pushes. */
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
