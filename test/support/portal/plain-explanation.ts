import { explainProblem } from '../../../src/console/problems/explain-problem.ts'
import { plainText } from '../../../src/console/problems/words.ts'

/** Explains a problem as a terminal shows it. */
export function explainPlainly(...problem: Parameters<typeof explainProblem>) {
  const { evidence, todo, ...rest } = explainProblem(...problem)
  return { ...rest, evidence: evidence.map(plainText), todo: todo.map(plainText) }
}
