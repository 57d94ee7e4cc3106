// In this project the test repeats more often, see `support/runner/long-form.ts`.
import '../../faults/crash.test.ts'
