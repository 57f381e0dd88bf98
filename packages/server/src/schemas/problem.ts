import { Type } from 'typebox'

/** RFC 9457. Written by `problem.ts`, so this only documents it. */
export const problem = Type.Object(
  {
    type: Type.String({ examples: ['urn:belfry:problem:invalid_request'] }),
    title: Type.String({ description: 'What the code means, for people.' }),
    status: Type.Integer({ description: 'The HTTP status.' }),
    code: Type.String({ description: 'Stable; what programs may rely on.', examples: ['invalid_request'] }),
    detail: Type.String({ description: 'What went wrong this time.' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: 'Where; empty for the whole.' }),
          message: Type.String(),
          suggestion: Type.Optional(Type.String({ description: 'What was probably meant.' })),
        }),
      ),
    ),
  },
  { title: 'Problem', description: 'What went wrong, as RFC 9457 says it.' },
)
