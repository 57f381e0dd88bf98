import type { Definition } from '../job/definition.ts'
import type { UnderstoodJob } from './understand-job.ts'

/**
 * What stands in a definition though no caller says it: who created the job, the batch that it was created in, and the local names
 * of the jobs that it follows. Each change that writes a new definition keeps it.
 */
export function keepOrigin(understood: UnderstoodJob, stored: Definition): UnderstoodJob {
  return {
    ...understood,
    definition: withOrigin(understood.definition, stored),
    // From the text, which was judged: the payload of the object is the caller's.
    definitionJson: JSON.stringify(withOrigin(JSON.parse(understood.definitionJson), stored)),
  }
}

function withOrigin(wanted: Definition, { createdBy, batchId, after }: Definition): Definition {
  const definition = { ...wanted }
  delete definition.batchId
  delete definition.createdBy
  if (definition.after !== undefined && after?.refs !== undefined)
    definition.after = { ...definition.after, refs: after.refs }
  if (createdBy !== undefined) definition.createdBy = createdBy
  if (batchId !== undefined) definition.batchId = batchId
  return definition
}
