import { systemCode } from '../../domain/errors.ts'

/** An error as it crosses threads: a message keeps neither the class nor the code of an `Error`. */
export interface Failure {
  /** The code that the system or a library gave it; null: none. */
  readonly code: string | null
  readonly message: string
}

export function failureOf(error: unknown): Failure {
  return { code: systemCode(error), message: error instanceof Error ? error.message : String(error) }
}

export function errorOf({ code, message }: Failure): Error {
  const error = new Error(message)
  return code === null ? error : Object.assign(error, { code })
}
