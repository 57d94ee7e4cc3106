// `npm test` repeats these races a few times, and `npm run test:stress` hundreds of times.
import '../../core/store/contract/history.test.ts'
import '../../core/store/contract/polling.test.ts'
import '../../server/postgres/two-replicas.extended.test.ts'
