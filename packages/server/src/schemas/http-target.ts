import { Type } from 'typebox'

const codes = (description: string) =>
  Type.Optional(
    Type.Array(Type.Unsafe<string | number>({ type: ['string', 'integer'], examples: ['4xx', 404] }), { description }),
  )

export const httpTarget = Type.Object(
  {
    url: Type.String({
      description: 'Where to call. May hold `{{nominalAt}}`, `{{runId}}`, `{{attempt}}` and `{{secret:name}}`.',
      examples: ['https://example.com/hooks/digest'],
    }),
    method: Type.Optional(Type.String({ default: 'POST', examples: ['POST', 'GET'] })),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'May hold templates and secrets, too.',
        examples: [{ authorization: 'Bearer {{secret:digest-token}}' }],
      }),
    ),
    body: Type.Optional(
      Type.Unknown({
        description:
          'Any JSON value, a text, or `{"base64": "…"}`. Without it the payload is the body; both is an error.',
      }),
    ),
    auth: Type.Optional(
      Type.Object(
        {
          type: Type.Optional(Type.Literal('oauth2')),
          tokenUrl: Type.String({ examples: ['https://login.example.com/oauth/token'] }),
          clientId: Type.String({ examples: ['belfry'] }),
          clientSecret: Type.String({ examples: ['{{secret:oauth}}'] }),
          scope: Type.Optional(Type.String()),
          audience: Type.Optional(Type.String()),
        },
        {
          additionalProperties: false,
          description: 'OAuth 2 client credentials: the token is fetched, kept and sent.',
        },
      ),
    ),
    succeedOn: codes('Status codes that succeed although they usually would not.'),
    retryOn: codes('Status codes that are tried again although they usually would not.'),
    failOn: codes('Status codes that fail for good although they usually would not.'),
  },
  { title: 'HttpTarget', additionalProperties: false, description: 'An HTTP call: any 2xx answer is a success.' },
)
