import { APPROXIMATE_WORDS, type HistoryThen, type LookBack } from '../../console/parcels/look-back.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { ApproximateBecause } from '../../core/domain/history/overwritten.ts'
import { encodeAll, encodeLatest } from '../../core/domain/history/pull-response.ts'
import { readIdentifier } from '../../core/domain/identifiers.ts'
import { languagePreference } from '../../core/domain/languages.ts'
import { wrongInput } from '../../core/domain/read-input.ts'
import type { Reads, Relay, Writes } from '../../core/flow/relay-part.ts'
import { loadNumber, RETIRED_AT } from '../../core/store/settings.ts'
import { loadKnownHistory, replacedSpans } from './as-of.rows.ts'
import { type HistoryAsOf, historyAsOf, isReplaced, type KnownHistory, newsSince } from './as-of.rules.ts'

interface LookBackPorts extends Pick<Relay, 'clock'>, Reads<'atOnce'>, Writes<'erasedAtMs'> {
  /** `upstream.languages`, never empty; the first is the default. */
  readonly languages: () => readonly string[]
}

/** Tells what the relay knew of a parcel at a time (DOMAIN 11). */
export function createLookBack({ reads, write, clock, languages }: LookBackPorts): LookBack {
  /** What was known of an identifier before its parcel is gone, unless there was none: retention keeps no list of what it deleted. */
  async function lostSince(identifier: string, atMs: number): Promise<readonly ApproximateBecause[]> {
    const [erasedAtMs, retiredMs, replaced] = await Promise.all([
      write.erasedAtMs({ identifier, nowMs: clock.now() }),
      reads.atOnce((session) => loadNumber(session, RETIRED_AT)),
      reads.atOnce((session) => replacedSpans(session)),
    ])
    return [
      ...(erasedAtMs !== null && atMs < erasedAtMs ? (['erasure'] as const) : []),
      ...(atMs < retiredMs ? (['retention'] as const) : []),
      ...(isReplaced(replaced, atMs) ? (['restore'] as const) : []),
    ]
  }

  return async ({ identifier: typed, asOfMs, sinceMs, language }) => {
    const identifier = readIdentifier(typed)
    const nowMs = clock.now()
    // The clock of who asks may be ahead, and nobody knows what will be. What ours had reached before it was put back is still found.
    const atMs = Math.min(asOfMs ?? nowMs, nowMs)
    if (sinceMs !== null && sinceMs >= atMs)
      throw wrongInput(
        'query',
        'since',
        `since must be earlier than ${asOfMs === null || asOfMs >= nowMs ? 'now' : 'asOf'}, ${new Date(atMs).toISOString()}.`,
      )
    const known = await reads.atOnce((session, contents) => loadKnownHistory(session, contents, identifier))
    const then = known === null ? null : historyAsOf(known, identifier, asOfMs ?? Number.POSITIVE_INFINITY)
    if (known === null || then === null || then.source === null)
      throw notKnownThen(atMs, then, [...new Set([...(then?.approximate ?? []), ...(await lostSince(identifier, atMs))])])
    const { source, approximate, knownFromMs } = then
    const preference = languagePreference(language, languages())
    const all = encodeAll(source, preference)
    return {
      asOfMs: atMs,
      knownFromMs,
      approximate,
      entries: source.entries,
      distributionType: source.distributionType,
      identifiers: then.identifiers,
      answer: {
        language: all.contentLanguages.join(', '),
        all: all.body,
        latest: encodeLatest(source, preference)?.body ?? null,
      },
      news: sinceMs === null ? null : newsOf(known, identifier, sinceMs, source.entries),
    }
  }
}

function newsOf(known: KnownHistory, identifier: string, sinceMs: number, now: HistoryThen['entries']): HistoryThen['news'] {
  const before = historyAsOf(known, identifier, sinceMs)
  return newsSince(before.source?.entries ?? [], before.sequence, now)
}

function notKnownThen(atMs: number, then: HistoryAsOf | null, approximate: readonly ApproximateBecause[]): AppError {
  const from = then?.knownFromMs ?? null
  const at = new Date(atMs).toISOString()
  const sentences = [
    then?.isUnheardOf === true ? `The carrier had said by ${at} that it did not know it.` : `Nothing was known of it at ${at}.`,
    then === null
      ? 'No parcel has this identifier.'
      : from === null
        ? 'Nothing is known of it yet.'
        : `It is known from ${new Date(from).toISOString()} on.`,
    ...approximate.map((because) => APPROXIMATE_WORDS[because]),
  ]
  const facts = {
    ...(from === null ? {} : { knownFrom: new Date(from).toISOString() }),
    ...(approximate.length === 0 ? {} : { approximate: [...approximate] }),
  }
  return new AppError('not_found', sentences.join(' '), { facts })
}
