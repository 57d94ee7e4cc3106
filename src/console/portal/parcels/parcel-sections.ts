import type { ExplainedParcel } from '../../parcels/parcel-queries.ts'
import { html, type Markup, type Part } from '../html.ts'
import type { Visit } from '../layout.ts'

/** A section of the page of a parcel. */
export interface ParcelSection {
  /** The anchor of its heading, and the heading. */
  readonly id: string
  readonly title: string
  /** Sections stand in ascending order: those below 0 before the history, the others after it. */
  readonly position: number
  /** Makes what stands below the heading; null: the page has no such section. A visitor may have the scope `status` only. */
  readonly show: (visit: Visit, parcel: ExplainedParcel) => Promise<Part>
}

/** Makes sections of the page of a parcel from use cases. */
export type SectionsOf<Options> = (options: Options) => readonly ParcelSection[]

/** Shows the sections of a parcel that stand before its history, and those that stand after it. */
export async function showSections(
  sections: readonly ParcelSection[],
  visit: Visit,
  parcel: ExplainedParcel,
): Promise<Readonly<Record<'before' | 'after', readonly Markup[]>>> {
  const sorted = sections.toSorted((one, other) => one.position - other.position)
  const shown = await Promise.all(sorted.map(async (section) => ({ ...section, part: await section.show(visit, parcel) })))
  const made = (isHere: (position: number) => boolean) =>
    shown.flatMap(({ id, title, position, part }) =>
      part === null || !isHere(position) ? [] : [html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${part}</section>`],
    )
  return { before: made((position) => position < 0), after: made((position) => position >= 0) }
}
