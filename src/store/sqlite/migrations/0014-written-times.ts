import type { Migration } from 'kysely/migration'

/**
 * A time is served as it was written, so `sighting.has_ms` says more than whether there are milliseconds (see `store/instant-codec`). The column
 * holds that as it is. The step is there for versions before it: they would read such times back as others, so they must not open the store.
 */
export const writtenTimes: Migration = {
  up: () => Promise.resolve(),
}
