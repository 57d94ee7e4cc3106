// `npm test` repeats these races a few times, and `npm run test:stress` hundreds of times.
import '../../store/contract/history.test.ts'
import '../../store/contract/polling.test.ts'
import '../../store/postgres/two-replicas.test.ts'
