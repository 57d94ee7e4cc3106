import { basename } from 'node:path'

/** Collects everything that an operator must still provide, so that one error names all of it. A restore is usually urgent. */
export interface Lacks {
  note(lack: string): void
  /** If something is lacking already, adds the message of an error. Otherwise throws the error as it is. */
  noteError(error: unknown): void
  isEmpty(): boolean
  refusal(): Error
}

export function createLacks(): Lacks {
  const lacks: string[] = []
  return {
    note: (lack) => void lacks.push(lack),
    noteError(error) {
      if (lacks.length === 0 || !(error instanceof Error)) throw error
      lacks.push(error.message)
    },
    isEmpty: () => lacks.length === 0,
    refusal: () => new Error(`${lacks.join('\n')}${lacks.at(-1)?.includes(UNCHANGED) === true ? '' : ` ${UNCHANGED}`}`),
  }
}

const UNCHANGED = 'Nothing was changed.'

export function numbersUnknown(store: string, isOther: boolean): string {
  return (
    `${store} ${isOther ? 'is of another relay than the backup' : 'is gone or cannot be read'}, so nobody knows which numbers ${isOther ? 'the relay of the backup' : 'it'} has given. Name the highest sequence that any reader or endpoint has seen ` +
    '(`relay-sequence`, `webhook-id`, or the `after` of a reader of the feed): --last N. Somewhat too high does no harm.'
  )
}

/** @param place the file beside the lost store that listed what was erased; it existed only if something was erased */
export function erasuresUnknown(place: string): string {
  return (
    'Nobody knows what was erased since the backup, and it would come back. If anything ever was erased, ' +
    `a file ${basename(place)} lay beside the store of the relay that made the backup: name a copy of it with --tombstones FILE. If nothing was erased, or it may come back: --forget-erasures.`
  )
}

export function tombstonesOfOther(place: string): string {
  return (
    `${place} lies beside the store of another relay than the backup. Move it away; if it is a copy of what the relay of the backup has erased, ` +
    'name it with --tombstones FILE. What the other relay has erased comes back if the backup holds it: erase that again.'
  )
}
