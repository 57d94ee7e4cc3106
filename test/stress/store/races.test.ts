// `npm test` runs a few of these races; this project runs hundreds.
import '../../store/contract/history.test.ts'
import '../../store/contract/polling.test.ts'
import '../../store/postgres/two-replicas.test.ts'
