// The stress tests repeat this test more often; see `support/runner/long-form.ts`.
import '../../faults/crash.test.ts'
