// As often as the project of this file has it.
import '../../e2e/postgres-kills.test.ts'
