import { AppError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'

/** Parses an identifier from the text of a path. Throws `bad_tracking_number`. */
export function readIdentifier(text: string): string {
  const identifier = parseIdentifier(text)
  if (identifier === null) throw new AppError('bad_tracking_number', 'An identifier is 4 to 40 letters and digits.')
  return identifier
}
