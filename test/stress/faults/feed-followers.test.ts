// As often as the project of this file has it.
import '../../faults/feed-followers.test.ts'
