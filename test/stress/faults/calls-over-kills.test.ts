// As often as the project of this file has it.
import '../../faults/calls-over-kills.test.ts'
