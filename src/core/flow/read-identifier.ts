import { AppError } from '../domain/errors.ts'
import { describeBadIdentifier, parseIdentifier } from '../domain/identifiers.ts'

/** Parses an identifier from the text of a path. Throws `bad_tracking_number`. */
export function readIdentifier(text: string): string {
  const identifier = parseIdentifier(text)
  if (identifier === null) throw new AppError('bad_tracking_number', describeBadIdentifier(text))
  return identifier
}
