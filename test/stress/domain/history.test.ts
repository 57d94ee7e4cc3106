// The laws of the merge on all their cases; `npm test` tries each on some.
import '../../domain/history/count-entries.test.ts'
import '../../domain/history/decide.test.ts'
import '../../domain/history/history.test.ts'
import '../../domain/history/kept-answers.test.ts'
import '../../domain/history/law-of-the-merge.test.ts'
