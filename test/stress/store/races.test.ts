// Races at a store by the hundred; `npm test` runs a few of each.
import '../../store/contract/history.test.ts'
import '../../store/contract/polling.test.ts'
import '../../store/postgres/two-replicas.test.ts'
