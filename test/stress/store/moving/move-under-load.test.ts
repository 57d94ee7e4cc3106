// As often as the project of this file has it.
import '../../../store/moving/move-under-load.test.ts'
