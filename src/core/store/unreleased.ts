/** The reason why a store from before the first release is refused, and the remedy. */
export const MADE_UNRELEASED =
  'it was made by a version from before the first release, which this version cannot read. Nothing was changed. Start on a new store: watch the parcels again, and ' +
  'polls fetch their histories.'
