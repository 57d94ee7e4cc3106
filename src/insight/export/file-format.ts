import type { FlatRow, RowHead } from './flat-rows.rules.ts'

/** How the files of a format hold rows; a `Row` is one as it stands there, so that it can be copied as it is. */
export interface FileFormat<Row> {
  encode(row: FlatRow): Row
  /** Begins a file. `write` takes its bytes, and keeps none of them. `like`: the path of a file whose columns it gets; null: it has those of today. */
  begin(write: (bytes: Uint8Array) => void, like: string | null): Promise<RowWriter<Row>>
  /** Reads the rows of a whole file in their order. */
  read(path: string): Iterable<ReadRow<Row>> | AsyncIterable<ReadRow<Row>>
}

export interface RowWriter<Row> {
  add(row: Row): void
  end(): void
}

export interface ReadRow<Row> {
  readonly row: Row
  readonly head: RowHead
}
